# make          what there is            make lab    the course in JupyterLab
# make test     every test               make check  lint, types, parity and the quick tests
#
# Everything lives in .venv/ in this folder; the system's Python is only used to create it. The
# recipes are plain sh and GNU make 3.81 (the one on macOS), and use relative paths throughout,
# so the folder's own path may hold spaces. Windows has no make: README.md has the same commands.

# Where the small CPU build of torch comes from. With a GPU: make clean, then make lab TORCH_INDEX=
TORCH_INDEX = https://download.pytorch.org/whl/cpu
# What `make lab` opens. English: make lab START=notebooks/en/04_model_internal_parallel.ipynb
START = notebooks/04_model_internal_parallel.ipynb
# More options for pytest: make test ARGS="-k lesson -x"
ARGS =

PY = .venv/bin/python
# Some at a time, since many wait; tests that share something costly say so by xdist_group.
PYTEST = $(PY) -m pytest --dist=loadgroup

# An active conda or venv, and settings for some other Python, must not leak into ours.
unexport PYTHONPATH PYTHONHOME PYTHONSTARTUP VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV
unexport PIP_TARGET PIP_PREFIX PIP_ROOT PIP_PYTHON __PYVENV_LAUNCHER__
export PIP_USER = 0
export PIP_DISABLE_PIP_VERSION_CHECK = 1
export PYTHONNOUSERSITE = 1
export JUPYTER_PREFER_ENV_PATH = 1

.PHONY: help setup lab test check lint types parity quick test-meshes test-class build bench grade links hosted format clean FORCE
.DELETE_ON_ERROR:

help:
	@echo "make lab      安装并在 JupyterLab 中打开课程 | set up, open the course in JupyterLab"
	@echo "make test     安装并运行全部测试 | set up, run every test           (ARGS='-k name -x')"
	@echo "make check    快速检查 | lint, types, parity of the built notebooks, quick tests"
	@echo "make build    由源文件生成笔记本 | build the notebooks from solutions/*.py"
	@echo "make bench    真实多进程训练与测量 | train on real processes, measure, decide (ARGS=--preflight)"
	@echo "make grade    批改一个班的作业 | grade a class (SUBMISSIONS=folder-or-zip LESSON=04 ROSTER=csv OUT=folder)"
	@echo "make test-meshes  在每种网格上验证训练 | training on every mesh against one process"
	@echo "make test-class   批改一个 300 人的班 | grade a class of 300 whose scores are known"
	@echo "make links    改写徽章与链接 | rewrite badges and links from pyproject.toml"
	@echo "make hosted   在旧版与新版环境中测试单文件版 | single-file twins on the oldest and newest set"
	@echo "make format   整理代码格式 | format the code"
	@echo "make clean    删除 .venv 与缓存 | remove .venv and caches"
	@echo ""
	@echo "PYTHON=/path/to/python3.12   picks the Python that a new .venv is made with"
	@echo "TORCH_INDEX=                 torch for GPUs instead of the CPU build (make clean first)"

setup: .venv/ready

lab: .venv/ready
	@set -- --ServerApp.root_dir=.; \
	if [ "`id -u`" = 0 ]; then set -- "$$@" --allow-root; fi; \
	if [ "`uname -s`" != Darwin ] && [ -z "$$DISPLAY$$WAYLAND_DISPLAY$$BROWSER" ]; then \
	  set -- "$$@" --no-browser; \
	  echo "没有图形界面：请在浏览器中打开下面的网址 | No display: open the URL below in a browser"; \
	fi; \
	if [ -f "$(START)" ]; then set -- "$$@" --LabApp.default_url="/lab/tree/$(START)"; fi; \
	PATH="$$PWD/.venv/bin:$$PATH" exec $(PY) -m jupyterlab "$$@" $(ARGS)

test: .venv/ready
	$(PYTEST) -n 3 $(ARGS)

check: lint types parity quick

lint: .venv/ready
	$(PY) -m ruff check
	$(PY) -m ruff format --check

types: .venv/ready
	$(PY) -m mypy

parity: .venv/ready
	.venv/bin/parlab build --check

quick: .venv/ready
	$(PYTEST) -n 4 -m "not slow and not meshes and not big_class" $(ARGS)

test-meshes: .venv/ready
	$(PY) -m pytest -m meshes $(ARGS)

test-class: .venv/ready
	$(PY) -m pytest -m big_class $(ARGS)

build: .venv/ready
	.venv/bin/parlab build $(ARGS)
	$(PY) examples/make_class.py

bench: .venv/ready
	.venv/bin/parlab bench $(ARGS)

# What `make grade` takes and where it puts the grades; more options in ARGS.
SUBMISSIONS = examples/class
ROSTER = $(if $(filter examples/class,$(SUBMISSIONS)),examples/roster.csv)
LESSON = 04
OUT = grades/$(LESSON)

grade: .venv/ready
	.venv/bin/parlab grade "$(SUBMISSIONS)" --lesson "$(LESSON)" --out "$(OUT)" \
	  $(if $(ROSTER),--roster "$(ROSTER)") $(ARGS)

links: .venv/ready
	.venv/bin/parlab links

hosted: .venv/ready
	TORCH_INDEX="$(TORCH_INDEX)" $(PY) .ci/hosted.py $(ARGS)

format: .venv/ready
	$(PY) -m ruff check --fix
	$(PY) -m ruff format

clean:
	rm -rf .venv .venv.lock .venv-hosted build parlab.egg-info .mypy_cache .pytest_cache .ruff_cache
	find parlab tests -name __pycache__ -type d -prune -exec rm -rf {} +

# ---------------------------------------------------------------------------------------- set-up
# .venv/ready is written last, so a set-up that failed or was interrupted goes on at the next
# make. It holds this folder's path: a moved or copied folder is set up again, and so is one
# whose Python, or one of the packages that the rest stands on, has gone. .venv.lock/make holds the
# number of the make at work: one that was killed leaves it, and the next takes it over.

ready := $(shell set -- .venv/lib/python3*/site-packages; test -x $(PY) \
  && test -d "$$1/torch" && test -d "$$1/jupyterlab" && test -d "$$1/pytest" \
  && test "`cat .venv/ready 2>/dev/null`" = "`pwd -P`" && echo yes)
ifneq ($(ready),yes)
.venv/ready: FORCE
endif

# One word and a version for a candidate: ok, old or novenv (any Python can run this).
define PROBE
import sys
version = "%d.%d" % sys.version_info[:2]
try:
    import ensurepip, venv
    word = "ok"
except ImportError:
    word = "novenv"
if sys.version_info < (3, 10):
    word = "old"
print(word + " " + version)
endef
export PROBE

.venv/ready: pyproject.toml constraints.txt
	@mkdir .venv.lock 2>/dev/null || { \
	  other=`cat .venv.lock/make 2>/dev/null || { sleep 1; cat .venv.lock/make; } 2>/dev/null`; \
	  if [ -n "$$other" ] && kill -0 "$$other" 2>/dev/null; then \
	    echo "另一个 make 正在安装，请等它完成 | Another make ($$other) is setting up .venv:" \
	      "run this again when it is done" >&2; exit 1; \
	  fi; \
	}; echo "$$PPID" > .venv.lock/make
	@rm -f $@
	@case "`$(PY) -c "$$PROBE" 2>/dev/null`" in \
	  ok*) if $(PY) -m pip --version >/dev/null 2>&1; then exit 0; fi;; \
	esac; \
	if [ -n "$$PYTHON" ]; then set -- "$$PYTHON"; \
	else set -- python3 python3.13 python3.12 python3.11 python3.10 python; fi; \
	python=; novenv=; old=; \
	for p in "$$@"; do \
	  said=`"$$p" -c "$$PROBE" 2>/dev/null`; \
	  case "$$said" in \
	    ok*) python=$$p; break;; \
	    novenv*) novenv=$${novenv:-$${said#* }};; \
	    old*) old=$${old:-$$p is $${said#* }};; \
	  esac; \
	done; \
	if [ -n "$$python" ]; then \
	  echo "正在创建 .venv，首次需要几分钟 | Setting up .venv with Python $${said#* }, which takes minutes"; \
	  exec "$$python" -m venv --clear --prompt parlab .venv; \
	elif [ -n "$$novenv" ]; then \
	  if command -v apt-get >/dev/null 2>&1; then do="apt install python$$novenv-venv"; \
	  else do="install your system's package for it (often called python3-venv)"; fi; \
	  echo "Python $$novenv 缺少 venv 模块 | Python $$novenv has no venv module: $$do" >&2; \
	elif [ -n "$$PYTHON" ] && [ -z "$$old" ]; then \
	  echo "PYTHON=$$PYTHON 不是可用的 Python | PYTHON=$$PYTHON is no Python that runs:" \
	    "give the path of Python 3.10 or newer" >&2; \
	else \
	  echo "需要 Python 3.10 或更新版本 | Python 3.10 or newer is needed ($${old:-none found}):" \
	    "install it, or name it: make PYTHON=/path/to/python3" >&2; \
	fi; rm -rf .venv.lock; exit 1
	@$(PY) -m pip install --quiet -c constraints.txt pip setuptools
	@torch=`sed -n 's/^\(torch==[0-9.]*\).*/\1/p' constraints.txt`; \
	set -- $(PY) -m pip install --no-deps; \
	if [ -n "$(TORCH_INDEX)" ]; then \
	  echo "$$torch: CPU build from $(TORCH_INDEX); if that cannot be reached, the general one" \
	    "(several GB on Linux)"; \
	  "$$@" --retries 0 --timeout 20 --extra-index-url "$(TORCH_INDEX)" "$$torch" || "$$@" "$$torch"; \
	else "$$@" "$$torch"; fi
	@$(PY) -m pip install -c constraints.txt --no-build-isolation -e '.[test]'
	@mkdir -p .venv/share/jupyter/lab/settings
	@echo '{"@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": false}}' \
	  > .venv/share/jupyter/lab/settings/overrides.json
	@pwd -P > $@; rm -rf .venv.lock
