"""The communicator of `rank_threads` over real processes: torch.distributed moves the tensors."""

import torch
import torch.distributed as dist
from torch import Tensor

from parlab.lesson.communicator import Communicator, Post


class ProcessCommunicator(Communicator):
    """This process's rank in the default process group, which must be running.

    Every tensor is moved as one flat piece: gloo and older torch take concatenations along the
    first dim only.
    """

    def __init__(self) -> None:
        super().__init__(dist.get_rank(), dist.get_world_size())

    def _meet(self, post: Post) -> tuple[Tensor, ...]:
        with torch.no_grad():
            if post.operation == "shift":
                return self._shift(post.tensors, post.argument or 1)
            x, dim = post.tensors[0], post.argument or 0
            if post.operation == "all_gather":
                return (self._gather(x, dim),)
            if post.operation == "reduce_scatter":
                return (self._scatter(x, dim),)
            total = x.contiguous().clone()
            dist.all_reduce(total)
            return (total,)

    def _gather(self, x: Tensor, dim: int) -> Tensor:
        out = x.new_empty(self.size * x.numel())
        dist.all_gather_into_tensor(out, x.contiguous().view(-1))
        return torch.cat(list(out.view(self.size, *x.shape)), dim)

    def _scatter(self, x: Tensor, dim: int) -> Tensor:
        parts = torch.stack(x.tensor_split(self.size, dim))
        out = x.new_empty(parts[0].numel())
        dist.reduce_scatter_tensor(out, parts.view(-1))
        return out.view(parts.shape[1:])

    def _shift(self, tensors: tuple[Tensor, ...], step: int) -> tuple[Tensor, ...]:
        following, previous = (self.rank + step) % self.size, (self.rank - step) % self.size
        if self.size == 1:
            return tuple(tensor.clone() for tensor in tensors)
        sent = [tensor.contiguous() for tensor in tensors]
        received = [torch.empty_like(tensor) for tensor in sent]
        moves = [dist.P2POp(dist.isend, tensor, following) for tensor in sent]
        moves += [dist.P2POp(dist.irecv, tensor, previous) for tensor in received]
        for pending in dist.batch_isend_irecv(moves):
            pending.wait()
        return tuple(received)
