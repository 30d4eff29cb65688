"""A kernel provisioner for jupyter_client: kernels come from the warm parent, sandboxed.

A kernelspec names it under ``metadata.kernel_provisioner`` with the warm parent's ``socket_path``
(`parlab.grade.warm` writes one). Whoever starts that kernel, nbval for one, needs to know nothing
else.
"""

# mypy: disable-error-code="misc"

import json
import os
import uuid
from dataclasses import asdict
from importlib.metadata import EntryPoint
from typing import Any

from jupyter_client.provisioning.factory import KernelProvisionerFactory
from jupyter_client.provisioning.provisioner_base import KernelProvisionerBase
from traitlets import Unicode

from parlab.grade.forkserver import Connection
from parlab.grade.limits import Limits

_CHANNELS = ("shell_port", "iopub_port", "stdin_port", "control_port", "hb_port")


class SandboxProvisioner(KernelProvisionerBase):
    """One sandboxed kernel.

    Attributes:
        connection: to the warm parent; tells how the kernel ended. None before the launch.
    """

    socket_path: Any = Unicode(config=True, help="where the warm parent listens")
    connection: Connection | None = None

    @property
    def has_process(self) -> bool:
        """Whether a kernel was launched and not yet seen off."""
        return self.connection is not None

    async def poll(self) -> int | None:
        """None while the kernel lives, else how it ended."""
        if self.connection is None or not self.connection.poll():
            return None if self.connection else 0
        return int((self.connection.ended or {}).get("status", 1))

    async def wait(self) -> int | None:
        """Waits for the kernel's end, a few seconds at most."""
        if self.connection is None:
            return 0
        self.connection.wait(5)
        return await self.poll()

    async def send_signal(self, signum: int) -> None:
        """A signal to the kernel."""
        if self.connection:
            self.connection.signal(signum)

    async def kill(self, restart: bool = False) -> None:
        """Ends the kernel, with all that it has started; returns when they are gone."""
        if self.connection:
            self.connection.kill()

    async def terminate(self, restart: bool = False) -> None:
        """The same: a sandbox is owed no farewell."""
        await self.kill(restart)

    async def cleanup(self, restart: bool = False) -> None:
        """Lets go of the connection."""
        await self.kill(restart)

    async def pre_launch(self, **kwargs: Any) -> dict[str, Any]:
        """Chooses the sockets; no connection file is written."""
        km: Any = self.parent
        km.transport_encryption = "disabled"
        km.transport = "ipc"
        km.ip = os.path.join(os.path.dirname(self.socket_path), f"k{uuid.uuid4().hex[:12]}")
        for port, name in enumerate(_CHANNELS, 1):
            setattr(km, name, port)
        km.cache_ports = False
        return {"cmd": [], **kwargs}

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        """Asks the warm parent for a kernel; its sockets wait for clients on return.

        Raises:
            RuntimeError: the sandbox could not be made.
        """
        km: Any = self.parent
        limits = json.loads(os.environ.get("PARLAB_GRADE_LIMITS") or "null") or asdict(Limits())
        request = {
            "kind": "kernel",
            "name": os.path.basename(km.ip),
            "key": km.session.key.decode(),
            "limits": limits,
        }
        self.connection = Connection(self.socket_path, request)
        if self.connection.ended:
            raise RuntimeError(f"no sandbox: {self.connection.ended.get('error')}")
        self.connection_info = km.get_connection_info()
        return self.connection_info


def register(name: str) -> None:
    """Makes the provisioner known to this process, installed or not."""
    entry = EntryPoint(name, f"{__name__}:SandboxProvisioner", KernelProvisionerFactory.GROUP_NAME)
    KernelProvisionerFactory.instance().provisioners[name] = entry
