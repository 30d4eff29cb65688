"""What the warm parent imports once, so that no kernel has to."""

import contextlib
import gc
import importlib
import pkgutil

_WARM = (
    "torch",
    "matplotlib.pyplot",
    "matplotlib.font_manager",
    "matplotlib_inline.backend_inline",
)
# What ipykernel, IPython's tracebacks and torch import only when they are first needed.
_WARM_KERNEL = (
    "ipykernel.kernelapp", "ipykernel.ipkernel", "ipykernel.debugger", "IPython.core.completerlib",
    "IPython.core.debugger", "IPython.core.oinspect", "IPython.core.logger", "pdb",
    "IPython.extensions.storemagic", "tornado.platform.asyncio", "stack_data", "pure_eval",
    "executing", "asttokens", "pygments.formatters.terminal256", "pygments.styles",
    "torch._subclasses.schema_check_mode", "torch.utils._device",
)  # fmt: skip


def warm() -> None:
    """Imports what every answer needs, and makes it memory that children share."""
    for name in (*_WARM, *_WARM_KERNEL):
        importlib.import_module(name)
    import torch

    import parlab.lesson

    torch.set_num_threads(1)
    for module in pkgutil.iter_modules(parlab.lesson.__path__, "parlab.lesson."):
        with contextlib.suppress(Exception):
            importlib.import_module(module.name)
    gc.collect()
    gc.freeze()  # children need not copy what they never touch
    gc.disable()
