"""The first cell of exercises and twins: where to open the notebook, and its other language."""

from parlab.author.repo_links import relative_link
from parlab.author.repository import Repository

_COLAB_BADGE = "https://colab.research.google.com/assets/colab-badge.svg"
_KAGGLE_BADGE = "https://kaggle.com/static/images/open-in-kaggle.svg"
_MODELSCOPE_BADGE = "https://img.shields.io/badge/ModelScope-{text}-624aff.svg"
_OPEN = {"zh": "打开：{}", "en": "Open in {}"}
_MODELSCOPE = {"zh": "魔搭", "en": "ModelScope"}
_UPLOAD = {"zh": "colab/README.md#modelscope", "en": "colab/README.md#modelscope-english"}
_OTHER = {"zh": "English version", "en": "中文版"}
_SAVE = {
    "zh": "⚠️ 关闭页面后修改会丢失，请先保存：Colab 选“文件 > 在云端硬盘中保存一份副本”；"
    "魔搭在关闭前下载本文件。",
    "en": "⚠️ Your edits vanish when the page closes unless you save a copy: in Colab, "
    "File > Save a copy in Drive; in ModelScope, download this file before closing.",
}


def badges(
    repository: Repository, notebook: str, twin: str, other: str, language: str, alone: bool
) -> str:
    """The badges cell.

    Args:
        repository: where the course is published.
        notebook: path of the notebook that holds the cell.
        twin: path of its single-file twin, which hosted runtimes open.
        other: path of the same notebook in the other language.
        language: ``"zh"`` or ``"en"``.
        alone: whether the notebook travels without the repository, as a twin does.
    """
    label = _OPEN[language].format
    modelscope = repository.blob(_UPLOAD[language])
    opener = _MODELSCOPE_BADGE.format(text={"zh": "魔搭", "en": "open"}[language])
    target = repository.blob(other) if alone else relative_link(other, notebook)
    lines = [
        f"[![{label('Colab')}]({_COLAB_BADGE})]({repository.colab(twin)})",
        f"[![{label(_MODELSCOPE[language])}]({opener})]({modelscope})",
        f"[![{label('Kaggle')}]({_KAGGLE_BADGE})]({repository.kaggle(twin)})",
        "",
        f"[{_OTHER[language]}]({target})",
    ]
    if alone:
        lines += ["", _SAVE[language]]
    return "\n".join(lines)
