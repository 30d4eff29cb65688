"""The set-up cell: how a notebook gets at ``parlab``, beside it or from the cell itself."""

from collections.abc import Mapping

from parlab.author.bundle import without_carried
from parlab.author.embed import QUOTE

_FIRST_LINE = "# SETUP"
_MISSING = {
    "zh": (
        "找不到 parlab：请在课程文件夹里运行 make lab；已经装好，就把内核换成课程的 .venv；",
        "只有这一个文件，请改用 colab/ 里的同名 notebook。",
    ),
    "en": (
        "parlab is not installed: run `make lab` in the course's folder; if you have, pick ",
        "its .venv as kernel; with only this file, use the one of the same name in colab/.",
    ),
}
_TITLE = {
    "zh": "准备：先运行这个单元（里面是课程工具的源码，不用读）",
    "en": "Set-up: run this cell first (it holds the course's tools; no need to read it)",
}
_READY = {"zh": "✅ 准备好了。", "en": "✅ Ready."}
_GUARD = """\
try:
    from parlab.lesson.language import speak
except ModuleNotFoundError as missing:
    missing._render_traceback_ = lambda: [
        "{}"
        "{}"
    ]
    raise
"""
_SPEAK = "from parlab.lesson.language import speak\n\n"
# A later run replaces what an earlier one, or an installed parlab, has put in sys.modules.
_REGISTER = """

def _register(sources):
    for name in sorted(sources):  # a package before its modules
        file = f"<{name}>"
        package = any(other.startswith(name + ".") for other in sources)
        module = ModuleType(name)
        module.__spec__ = ModuleSpec(name, None, origin=file, is_package=package)
        module.__package__ = name if package else name.rpartition(".")[0]
        module.__file__ = file
        if package:
            module.__path__ = []
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)
    for name, source in sources.items():  # a module after those that it imports
        module = sys.modules[name]
        lines = source.splitlines(keepends=True)
        linecache.cache[module.__file__] = (len(source), None, lines, module.__file__)
        exec(compile(source, module.__file__, "exec", dont_inherit=True), module.__dict__)


_register(_SOURCES)
"""
_PACKED = {
    "zh": "压缩打包的基准程序、工作负载和示例记录，运行时解到临时文件夹。可读的源码在：",
    "en": "the benchmark, its workload and the example records, packed; unpacked into a temporary "
    "folder. Readable source:",
}
_BROKEN = {
    "zh": "这个文件不完整：重新下载它。",
    "en": "this file is damaged: download it again.",
}
_UNPACK_IMPORTS = """\
import atexit
import base64
import bz2
import hashlib
import json
import linecache
import shutil
import sys
import tempfile
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
"""
_UNPACK = """

# {what}
# {where}
_BUNDLE = {quotes}
{lines}
{quotes}


def _unpack(text, digest):
    data = base64.b64decode(text)
    if hashlib.sha256(data).hexdigest() != digest:
        raise ValueError("{broken}")
    folder = Path(tempfile.mkdtemp(prefix="parlab-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name, content in json.loads(bz2.decompress(data)).items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content, encoding="utf-8")
    for name in ("parlab", "parlab.lesson"):
        sys.modules[name].__path__ = [str(folder.joinpath(*name.split(".")))]


_unpack(_BUNDLE, "{digest}")
"""


def guarded_setup(source: str, language: str) -> str:
    """The set-up cell of notebooks beside an installed ``parlab``: says so in a line if it is not.

    Args:
        source: the lesson's set-up cell.
        language: ``"zh"`` or ``"en"``.
    """
    guard = _GUARD.format(*_MISSING[language])
    return f"{_FIRST_LINE}\n{guard}\n{_body(source, language)}"


def single_file_setup(
    source: str,
    language: str,
    modules: Mapping[str, str],
    bundle: tuple[str, str] | None = None,
    address: str = "",
) -> str:
    """The set-up cell of a twin, which carries the modules it needs and folds away in Colab.

    Args:
        source: the lesson's set-up cell.
        language: ``"zh"`` or ``"en"``.
        modules: name and source, each after those that it imports.
        bundle: files besides, as `parlab.author.bundle.pack` gives them; unpacked into a folder of
            their own, where ``parlab`` then finds what it does not carry as source.
        address: where these can be read.
    """
    carried = "".join(f'    "{name}": r{QUOTE}{text}{QUOTE},\n' for name, text in modules.items())
    imports = (
        "import linecache\nimport sys\n"
        "from importlib.machinery import ModuleSpec\nfrom types import ModuleType\n"
    )
    unpack = ""
    if bundle:
        lines, digest = bundle
        imports = _UNPACK_IMPORTS
        unpack = _UNPACK.format(
            what=_PACKED[language], where=address, quotes=QUOTE, lines=lines, digest=digest,
            broken=_BROKEN[language],
        )  # fmt: skip
    return (
        f"#@title {_TITLE[language]}\n{_FIRST_LINE}\n{imports}\n"
        f"_SOURCES = {{\n{carried}}}\n{_REGISTER}{unpack}\n{_SPEAK}{_body(source, language)}"
    )


def _body(source: str, language: str) -> str:
    body = without_carried(source).partition("\n")[2].lstrip("\n")
    speak, ready = f'speak("{language}")', f'print("{_READY[language]}")'
    return "\n\n".join(filter(None, [speak, body, ready]))
