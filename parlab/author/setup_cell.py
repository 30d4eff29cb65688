"""The set-up cell: how a notebook gets at ``parlab``, beside it or from the cell itself."""

from collections.abc import Mapping

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


def guarded_setup(source: str, language: str) -> str:
    """The set-up cell of notebooks beside an installed ``parlab``: says so in a line if it is not.

    Args:
        source: the lesson's set-up cell.
        language: ``"zh"`` or ``"en"``.
    """
    guard = _GUARD.format(*_MISSING[language])
    return f"{_FIRST_LINE}\n{guard}\n{_body(source, language)}"


def single_file_setup(source: str, language: str, modules: Mapping[str, str]) -> str:
    """The set-up cell of a twin, which carries the modules it needs and folds away in Colab.

    Args:
        source: the lesson's set-up cell.
        language: ``"zh"`` or ``"en"``.
        modules: name and source, each after those that it imports.
    """
    carried = "".join(f'    "{name}": r{QUOTE}{text}{QUOTE},\n' for name, text in modules.items())
    imports = (
        "import linecache\nimport sys\n"
        "from importlib.machinery import ModuleSpec\nfrom types import ModuleType\n"
    )
    return (
        f"#@title {_TITLE[language]}\n{_FIRST_LINE}\n{imports}\n"
        f"_SOURCES = {{\n{carried}}}\n{_REGISTER}\n{_SPEAK}{_body(source, language)}"
    )


def _body(source: str, language: str) -> str:
    body = source.partition("\n")[2].lstrip("\n")
    speak, ready = f'speak("{language}")', f'print("{_READY[language]}")'
    return "\n\n".join(filter(None, [speak, body, ready]))
