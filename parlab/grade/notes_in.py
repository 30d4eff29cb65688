"""What is said about a submission on its way in: collecting, reading, rebuilding."""

# Key → Chinese and English; the names in braces are the note's values.
NOTES_IN: dict[str, tuple[str, str]] = {
    # -- who and which file
    "no_submission": ("名单上有，但没有交作业。", "On the roster, but nothing was handed in."),
    "late": ("学习平台标为迟交。", "Marked as late by the learning platform."),
    "many_notebooks": (
        "这个名字下有 {count} 个笔记本：如果这是装着几位学生的文件夹，请直接批改那个文件夹。",
        "There are {count} notebooks under this name: if it is a folder of several students, "
        "grade that folder by itself.",
    ),
    "newest_of_several": (
        "交了多个笔记本，按最新的评分：{used}。其余：{files}。",
        "Several notebooks were handed in; the newest counts: {used}. The others: {files}.",
    ),
    "newer_unreadable": (
        "更新的 {file} 读不出来，所以用了较早的一份。",
        "{file} is newer but cannot be read, so an earlier one counts.",
    ),
    "newer_other_lesson": (
        "更新的 {file} 不是这一课的，所以用了这一课的那份。",
        "{file} is newer but not of this lesson, so the one of this lesson counts.",
    ),
    "no_notebook": (
        "没有 .ipynb 笔记本；交上来的是：{files}。",
        "There is no .ipynb notebook; what was handed in: {files}.",
    ),
    "not_on_roster": (
        "名单里找不到 {name}：请核对姓名，或手工填写成绩。",
        "{name} is not on the roster: check the name, or enter the grade by hand.",
    ),
    "roster_guessed": (
        "{name} 里有 {taken} 这个名字，就当作他；如果是别人，请改名后再批改一次。",
        "{name} holds the name {taken} and was taken for that student; if it is somebody else's, "
        "rename it and grade again.",
    ),
    "roster_ambiguous": (
        "名单里有几位可能是 {name}：{candidates}。没有猜，请手工核对。",
        "Several on the roster may be {name}: {candidates}. Nothing was guessed; check by hand.",
    ),
    "left_aside": (
        "有 {count} 个文件不像作业，没有处理：{files}。",
        "Left aside, not looking like submissions ({count}): {files}.",
    ),
    "without_submission": (
        "名单上有 {count} 位学生没有交作业。",
        "On the roster without a submission: {count}.",
    ),
    # -- files that cannot be read
    "too_large": (
        "文件有 {mb} MB，超过上限 {limit} MB：清除全部输出，再交一次。",
        "The file has {mb} MB, more than the limit of {limit} MB: clear all outputs and hand it "
        "in again.",
    ),
    "too_many_cells": (
        "笔记本有 {count} 个单元，上限是 {limit}。",
        "The notebook has {count} cells; the limit is {limit}.",
    ),
    "too_much_code": (
        "代码有 {count} 个字符，上限是 {limit}。",
        "The code has {count} characters; the limit is {limit}.",
    ),
    "too_complex": (
        "文件结构太复杂，没有读取：清除全部输出，再交一次。",
        "The file's structure is too complex to be read: clear all outputs and hand it in again.",
    ),
    "empty_file": ("文件是空的。", "The file is empty."),
    "is_zip": (
        "文件名是 .ipynb，内容却是压缩包：请解压后交里面的笔记本。",
        "The file is called .ipynb but is a zip archive: unpack it and hand in the notebook.",
    ),
    "is_html": (
        "文件是网页，不是笔记本：用“下载 .ipynb”，不要保存网页。",
        "The file is a web page, not a notebook: use “Download .ipynb”, do not save the page.",
    ),
    "not_json": ("文件不是笔记本（不是 JSON）。", "The file is no notebook (it is not JSON)."),
    "broken_json": (
        "笔记本文件坏了，第 {line} 行读不下去（共 {lines} 行）：可能没有下载完整，请重新下载再交。",
        "The notebook file is damaged at line {line} of {lines}: it may have been cut off. "
        "Download it again and hand it in once more.",
    ),
    "no_cells": ("文件里没有单元，不是笔记本。", "The file has no cells: it is no notebook."),
    "symlink": (
        "交上来的是一个链接，不是文件；没有打开。",
        "What was handed in is a link, not a file; it was not followed.",
    ),
    "special_file": (
        "交上来的不是普通文件；没有打开。",
        "What was handed in is no ordinary file; it was not opened.",
    ),
    "unreadable_file": ("文件无法打开（{error}）。", "The file cannot be opened ({error})."),
    "unreadable_folder": ("文件夹无法打开（{error}）。", "The folder cannot be opened ({error})."),
    "empty_folder": ("文件夹是空的。", "The folder is empty."),
    "too_deep": ("文件夹嵌套超过 {limit} 层。", "Folders are nested more than {limit} deep."),
    "broken_zip": ("压缩包坏了，打不开。", "The zip archive is damaged and cannot be opened."),
    "broken_entry": (
        "压缩包里的这个文件坏了（{error}）。",
        "This file in the zip archive is damaged ({error}).",
    ),
    "zip_too_many": (
        "压缩包里的文件太多（上限 {limit} 个）。",
        "The zip archive holds too many files (the limit is {limit}).",
    ),
    "zip_too_deep": (
        "压缩包套压缩包超过 {limit} 层。",
        "Zip archives are nested more than {limit} deep.",
    ),
    "zip_bomb": (
        "压缩包解开后远远大于它声明的大小（上限 {limit} MB），没有解开。",
        "The zip archive unpacks to far more than it should (the limit is {limit} MB); it was "
        "not unpacked.",
    ),
    "encrypted": (
        "压缩包有密码：请不加密码再交一次。",
        "The zip archive has a password: hand it in without one.",
    ),
    "compression": (
        "压缩包用了读不了的压缩方式（{method}）：请用普通的 zip。",
        "The zip archive uses a method that is not read ({method}): use plain zip.",
    ),
    "climbing_path": (
        "压缩包里的路径指向外面；只取了文件名。",
        "The path in the zip archive leads outside; only its name was used.",
    ),
    # -- what was unusual about the file, and put right
    "outputs_cleared": ("清除了 {mb} MB 的输出。", "{mb} MB of outputs were cleared."),
    "old_format": (
        "笔记本格式是 {format}，已转换。",
        "The notebook has format {format} and was converted.",
    ),
    "byte_order_mark": (
        "文件以字节顺序标记开头（{encoding}），已去掉。",
        "The file starts with a byte order mark ({encoding}), which was removed.",
    ),
    "encoding": (
        "文件不是 UTF-8，按 {encoding} 读取；个别字符可能不对。",
        "The file is not UTF-8; it was read as {encoding}, and some characters may be wrong.",
    ),
    "kernel_replaced": (
        "内核 {kernel} 换成了课程的 Python 内核。",
        "The kernel {kernel} was replaced by the course's Python kernel.",
    ),
    "not_python": (
        "笔记本的语言是 {language}，不是 Python。",
        "The notebook's language is {language}, not Python.",
    ),
    # -- whose lesson
    "other_lesson": (
        "这是 {found} 的笔记本，这次批改的是 {wanted}。",
        "This is a notebook of {found}; what is graded is {wanted}.",
    ),
    "no_lesson": (
        "这不是 {wanted} 的笔记本：里面没有这一课的任何函数。",
        "This is no notebook of {wanted}: it holds none of the lesson's functions.",
    ),
    "is_solution": (
        "全部答案和参考答案完全一样。",
        "All answers are the reference solution's own code.",
    ),
    # -- which cell is the answer
    "several_answers": (
        "TODO {todo} 有多个实现；按运行顺序，最后一个（第 {cell} 个单元）算数，"
        "不算的在第 {others} 个单元。",
        "TODO {todo} is written more than once; the last one in running order (cell {cell}) "
        "counts, not cell {others}.",
    ),
    "stub_after_answer": (
        "TODO {todo} 的答案在第 {cell} 个单元；后面第 {stubs} 个单元又是原题，没有让它盖住答案。",
        "The answer to TODO {todo} is in cell {cell}; the untouched stub after it (cell {stubs}) "
        "was not allowed to replace it.",
    ),
    "answer_elsewhere": (
        "TODO {todo} 的答案写在别的单元（第 {cell} 个），已放回原处。",
        "The answer to TODO {todo} stood in another cell ({cell}) and was put in its place.",
    ),
    "marker_gone": (
        "TODO {todo} 单元（第 {cell} 个）的第一行不见了，按函数名找到。",
        "The first line of TODO {todo}'s cell ({cell}) was gone; it was found by the function's "
        "name.",
    ),
    "syntax_error": (
        "TODO {todo}（第 {cell} 个单元）第 {line} 行有语法错误：{message}。",
        "TODO {todo} (cell {cell}) has a syntax error in line {line}: {message}.",
    ),
    "answer_was_prose": (
        "TODO {todo} 的单元（第 {cell} 个）是文本单元，不会运行；已当作代码。",
        "TODO {todo}'s cell ({cell}) was a text cell, which does not run; it was taken as code.",
    ),
    "todo_absent": (
        "找不到 TODO {todo}：没有它的单元，也没有函数 {function}。",
        "TODO {todo} is not there: neither its cell nor the function {function}.",
    ),
    "renamed": (
        "TODO {todo}（第 {cell} 个单元）的函数改了名：必须叫 {function}，这里是 {found}。",
        "TODO {todo}'s function (cell {cell}) was renamed: it must be called {function}; here it "
        "is {found}.",
    ),
    "function_absent": (
        "TODO {todo} 的单元（第 {cell} 个）里没有函数 {function}。",
        "TODO {todo}'s cell ({cell}) does not define the function {function}.",
    ),
    # -- the course's own cells
    "cells_edited": (
        "课程的单元和现在的版本不同，已换成现在的（{count} 个）：{cells}。这不影响得分。",
        "Cells of the course differ from its current version and were replaced by it ({count}): "
        "{cells}. This costs nothing.",
    ),
    "cells_deleted": (
        "课程的单元被删除，已恢复（{count} 个）：{cells}。",
        "Cells of the course were deleted and have been restored ({count}): {cells}.",
    ),
    "cells_doubled": (
        "课程的单元重复出现，只留一份（{count} 个）：{cells}。",
        "Cells of the course stood there twice; one was kept ({count}): {cells}.",
    ),
    "cells_moved": (
        "课程的单元换了位置，已放回（{count} 个）：{cells}。",
        "Cells of the course were moved and have been put back ({count}): {cells}.",
    ),
    "cells_prose": (
        "课程的代码单元变成了文本，已恢复（{count} 个）：{cells}。",
        "Code cells of the course were turned into text and have been restored ({count}): {cells}.",
    ),
    # -- what was dropped
    "magics": (
        "去掉了 {count} 行魔法命令或 shell 命令：{lines}。",
        "Lines of magics or shell commands were dropped ({count}): {lines}.",
    ),
    "nbval_markers": (
        "去掉了影响检查的标记（注释 {count} 处，标签：{tags}）。",
        "Markers that influence checking were removed (in comments: {count}; tags: {tags}).",
    ),
    "cell_too_long": (
        "第 {cell} 个单元有 {count} 个字符，超过上限 {limit}，没有使用。",
        "Cell {cell} has {count} characters, more than the limit of {limit}, and was not used.",
    ),
}
