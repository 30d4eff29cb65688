# Answers to TODO 2 of lesson 04, one a cell: `right · name`, or
# `wrong · name · what the check's Chinese message must hold`.

# %% right · table_of_gates
from copy import deepcopy


def evaluate_internal_parallel_candidate(metrics, limits):
    gates = {
        "memory": ("peak_memory_mb", "memory_mb"),
        "bubble": ("bubble_ratio",) * 2,
        "communication": ("communication_ratio",) * 2,
    }
    failures = [gate for gate, (value, limit) in gates.items() if metrics[value] > limits[limit]]
    if metrics.get("failure") is not None:
        failures.append("runtime")
    return {**deepcopy(metrics), "eligible": len(failures) == 0, "gate_failures": failures}


# %% right · positive_form
import copy


def evaluate_internal_parallel_candidate(metrics, limits):
    passes = {
        "communication": metrics["communication_ratio"] <= limits["communication_ratio"],
        "bubble": metrics["bubble_ratio"] <= limits["bubble_ratio"],
        "memory": metrics["peak_memory_mb"] <= limits["memory_mb"],
        "runtime": not metrics.get("failure"),
    }
    result = copy.deepcopy(metrics)
    result.update(
        eligible=all(passes.values()), gate_failures=[gate for gate, ok in passes.items() if not ok]
    )
    return result


# %% right · json_copy
import json


def evaluate_internal_parallel_candidate(metrics, limits):
    result = json.loads(json.dumps(metrics))
    failures = []
    if "failure" in metrics and metrics["failure"]:
        failures = ["runtime"]
    if limits["memory_mb"] < metrics["peak_memory_mb"]:
        failures = [*failures, "memory"]
    if limits["bubble_ratio"] - metrics["bubble_ratio"] < 0:
        failures = [*failures, "bubble"]
    if (
        max(metrics["communication_ratio"], limits["communication_ratio"])
        != limits["communication_ratio"]
    ):
        failures = [*failures, "communication"]
    result["gate_failures"] = failures
    result["eligible"] = failures == []
    return result


# %% wrong · equality_fails · 等于上限算通过
from copy import deepcopy


def evaluate_internal_parallel_candidate(metrics, limits):
    result, failures = deepcopy(metrics), []
    if metrics.get("failure"):
        failures.append("runtime")
    if metrics["peak_memory_mb"] >= limits["memory_mb"]:
        failures.append("memory")
    if metrics["bubble_ratio"] >= limits["bubble_ratio"]:
        failures.append("bubble")
    if metrics["communication_ratio"] >= limits["communication_ratio"]:
        failures.append("communication")
    result["eligible"], result["gate_failures"] = not failures, failures
    return result


# %% wrong · comparison_reversed · 4 道门槛都通过
from copy import deepcopy


def evaluate_internal_parallel_candidate(metrics, limits):
    result, failures = deepcopy(metrics), []
    if metrics.get("failure"):
        failures.append("runtime")
    if metrics["peak_memory_mb"] < limits["memory_mb"]:
        failures.append("memory")
    if metrics["bubble_ratio"] < limits["bubble_ratio"]:
        failures.append("bubble")
    if metrics["communication_ratio"] < limits["communication_ratio"]:
        failures.append("communication")
    result["eligible"], result["gate_failures"] = not failures, failures
    return result


# %% wrong · first_failure_only · 3 个原因都要保留
from copy import deepcopy


def evaluate_internal_parallel_candidate(metrics, limits):
    result, failures = deepcopy(metrics), []
    if metrics.get("failure"):
        failures.append("runtime")
    elif metrics["peak_memory_mb"] > limits["memory_mb"]:
        failures.append("memory")
    elif metrics["bubble_ratio"] > limits["bubble_ratio"]:
        failures.append("bubble")
    elif metrics["communication_ratio"] > limits["communication_ratio"]:
        failures.append("communication")
    result["eligible"], result["gate_failures"] = not failures, failures
    return result


# %% wrong · failed_run_stops_early · 4 个原因都要保留
from copy import deepcopy


def evaluate_internal_parallel_candidate(metrics, limits):
    result, failures = deepcopy(metrics), []
    if metrics.get("failure"):
        return {**result, "eligible": False, "gate_failures": ["runtime"]}
    if metrics["peak_memory_mb"] > limits["memory_mb"]:
        failures.append("memory")
    if metrics["bubble_ratio"] > limits["bubble_ratio"]:
        failures.append("bubble")
    if metrics["communication_ratio"] > limits["communication_ratio"]:
        failures.append("communication")
    result["eligible"], result["gate_failures"] = not failures, failures
    return result


# %% wrong · ignores_runtime · 4 个原因都要保留
from copy import deepcopy


def evaluate_internal_parallel_candidate(metrics, limits):
    result, failures = deepcopy(metrics), []
    if metrics["peak_memory_mb"] > limits["memory_mb"]:
        failures.append("memory")
    if metrics["bubble_ratio"] > limits["bubble_ratio"]:
        failures.append("bubble")
    if metrics["communication_ratio"] > limits["communication_ratio"]:
        failures.append("communication")
    result["eligible"], result["gate_failures"] = not failures, failures
    return result


# %% wrong · failure_must_be_true · 4 个原因都要保留
from copy import deepcopy


def evaluate_internal_parallel_candidate(metrics, limits):
    result, failures = deepcopy(metrics), []
    if metrics.get("failure") is True:
        failures.append("runtime")
    if metrics["peak_memory_mb"] > limits["memory_mb"]:
        failures.append("memory")
    if metrics["bubble_ratio"] > limits["bubble_ratio"]:
        failures.append("bubble")
    if metrics["communication_ratio"] > limits["communication_ratio"]:
        failures.append("communication")
    result["eligible"], result["gate_failures"] = not failures, failures
    return result


# %% wrong · failure_key_required · KeyError: 'failure'
from copy import deepcopy


def evaluate_internal_parallel_candidate(metrics, limits):
    result, failures = deepcopy(metrics), []
    if metrics["failure"]:
        failures.append("runtime")
    if metrics["peak_memory_mb"] > limits["memory_mb"]:
        failures.append("memory")
    if metrics["bubble_ratio"] > limits["bubble_ratio"]:
        failures.append("bubble")
    if metrics["communication_ratio"] > limits["communication_ratio"]:
        failures.append("communication")
    result["eligible"], result["gate_failures"] = not failures, failures
    return result


# %% wrong · presence_counts_as_failure · failure 是 None
from copy import deepcopy


def evaluate_internal_parallel_candidate(metrics, limits):
    result, failures = deepcopy(metrics), []
    if "failure" in metrics:
        failures.append("runtime")
    if metrics["peak_memory_mb"] > limits["memory_mb"]:
        failures.append("memory")
    if metrics["bubble_ratio"] > limits["bubble_ratio"]:
        failures.append("bubble")
    if metrics["communication_ratio"] > limits["communication_ratio"]:
        failures.append("communication")
    result["eligible"], result["gate_failures"] = not failures, failures
    return result


# %% wrong · zero_means_not_measured · 没测到的项是 0
from copy import deepcopy


def evaluate_internal_parallel_candidate(metrics, limits):
    result, failures = deepcopy(metrics), []
    if metrics.get("failure"):
        failures.append("runtime")
    if not 0 < metrics["peak_memory_mb"] <= limits["memory_mb"]:
        failures.append("memory")
    if metrics["bubble_ratio"] > limits["bubble_ratio"]:
        failures.append("bubble")
    if metrics["communication_ratio"] > limits["communication_ratio"]:
        failures.append("communication")
    result["eligible"], result["gate_failures"] = not failures, failures
    return result


# %% wrong · limits_hard_coded · 按这一次的 limits 判断
from copy import deepcopy


def evaluate_internal_parallel_candidate(metrics, limits):
    result, failures = deepcopy(metrics), []
    if metrics.get("failure"):
        failures.append("runtime")
    if metrics["peak_memory_mb"] > 12000:
        failures.append("memory")
    if metrics["bubble_ratio"] > 0.2:
        failures.append("bubble")
    if metrics["communication_ratio"] > 0.3:
        failures.append("communication")
    result["eligible"], result["gate_failures"] = not failures, failures
    return result


# %% wrong · limits_swapped · 0.2001 > bubble_ratio
from copy import deepcopy


def evaluate_internal_parallel_candidate(metrics, limits):
    result, failures = deepcopy(metrics), []
    if metrics.get("failure"):
        failures.append("runtime")
    if metrics["peak_memory_mb"] > limits["memory_mb"]:
        failures.append("memory")
    if metrics["bubble_ratio"] > limits["communication_ratio"]:
        failures.append("bubble")
    if metrics["communication_ratio"] > limits["communication_ratio"]:
        failures.append("communication")
    result["eligible"], result["gate_failures"] = not failures, failures
    return result


# %% wrong · sum_of_ratios · 4 道门槛都通过
from copy import deepcopy


def evaluate_internal_parallel_candidate(metrics, limits):
    result, failures = deepcopy(metrics), []
    if metrics.get("failure"):
        failures.append("runtime")
    if metrics["peak_memory_mb"] > limits["memory_mb"]:
        failures.append("memory")
    if metrics["bubble_ratio"] + metrics["communication_ratio"] > limits["bubble_ratio"]:
        failures.append("bubble")
    if metrics["communication_ratio"] > limits["communication_ratio"]:
        failures.append("communication")
    result["eligible"], result["gate_failures"] = not failures, failures
    return result


# %% wrong · writes_into_the_input · 不能改动它的输入
def evaluate_internal_parallel_candidate(metrics, limits):
    failures = []
    if metrics.get("failure"):
        failures.append("runtime")
    if metrics["peak_memory_mb"] > limits["memory_mb"]:
        failures.append("memory")
    if metrics["bubble_ratio"] > limits["bubble_ratio"]:
        failures.append("bubble")
    if metrics["communication_ratio"] > limits["communication_ratio"]:
        failures.append("communication")
    metrics["eligible"], metrics["gate_failures"] = not failures, failures
    return metrics


# %% wrong · shallow_copy · 嵌套的值也不和输入共用
def evaluate_internal_parallel_candidate(metrics, limits):
    result, failures = dict(metrics), []
    if metrics.get("failure"):
        failures.append("runtime")
    if metrics["peak_memory_mb"] > limits["memory_mb"]:
        failures.append("memory")
    if metrics["bubble_ratio"] > limits["bubble_ratio"]:
        failures.append("bubble")
    if metrics["communication_ratio"] > limits["communication_ratio"]:
        failures.append("communication")
    result["eligible"], result["gate_failures"] = not failures, failures
    return result


# %% wrong · changes_the_limits · 不能改动它的输入
from copy import deepcopy


def evaluate_internal_parallel_candidate(metrics, limits):
    result = deepcopy(metrics)
    memory = limits.pop("memory_mb")
    failures = ["memory"] if metrics["peak_memory_mb"] > memory else []
    result["eligible"], result["gate_failures"] = not failures, failures
    return result


# %% wrong · appends_to_the_old_verdict · 上一次的结论要被这一次覆盖
from copy import deepcopy


def evaluate_internal_parallel_candidate(metrics, limits):
    result = deepcopy(metrics)
    failures = result.setdefault("gate_failures", [])
    if metrics.get("failure"):
        failures.append("runtime")
    if metrics["peak_memory_mb"] > limits["memory_mb"]:
        failures.append("memory")
    if metrics["bubble_ratio"] > limits["bubble_ratio"]:
        failures.append("bubble")
    if metrics["communication_ratio"] > limits["communication_ratio"]:
        failures.append("communication")
    result["eligible"] = not failures
    return result


# %% wrong · drops_other_entries · 4 道门槛都通过
def evaluate_internal_parallel_candidate(metrics, limits):
    failures = []
    if metrics.get("failure"):
        failures.append("runtime")
    if metrics["peak_memory_mb"] > limits["memory_mb"]:
        failures.append("memory")
    if metrics["bubble_ratio"] > limits["bubble_ratio"]:
        failures.append("bubble")
    if metrics["communication_ratio"] > limits["communication_ratio"]:
        failures.append("communication")
    return {"name": metrics["name"], "eligible": not failures, "gate_failures": failures}


# %% wrong · eligible_is_a_number · 4 道门槛都通过
from copy import deepcopy


def evaluate_internal_parallel_candidate(metrics, limits):
    result, failures = deepcopy(metrics), []
    if metrics.get("failure"):
        failures.append("runtime")
    if metrics["peak_memory_mb"] > limits["memory_mb"]:
        failures.append("memory")
    if metrics["bubble_ratio"] > limits["bubble_ratio"]:
        failures.append("bubble")
    if metrics["communication_ratio"] > limits["communication_ratio"]:
        failures.append("communication")
    result["eligible"], result["gate_failures"] = int(not failures), failures
    return result


# %% wrong · reason_misspelt · 12000.5 > memory_mb
from copy import deepcopy


def evaluate_internal_parallel_candidate(metrics, limits):
    result, failures = deepcopy(metrics), []
    if metrics.get("failure"):
        failures.append("runtime")
    if metrics["peak_memory_mb"] > limits["memory_mb"]:
        failures.append("peak_memory")
    if metrics["bubble_ratio"] > limits["bubble_ratio"]:
        failures.append("bubble")
    if metrics["communication_ratio"] > limits["communication_ratio"]:
        failures.append("communication")
    result["eligible"], result["gate_failures"] = not failures, failures
    return result


# %% wrong · equal_to_anything · 4 道门槛都通过
class Anything(list):
    def __eq__(self, other):
        return True


def evaluate_internal_parallel_candidate(metrics, limits):
    return {**metrics, "eligible": True, "gate_failures": Anything()}


# %% wrong · copy_of_two_levels · 嵌套的值也不和输入共用
def evaluate_internal_parallel_candidate(metrics, limits):
    result, failures = dict(metrics), []
    if "ranks" in metrics:
        result["ranks"] = [dict(rank) for rank in metrics["ranks"]]
    if metrics.get("failure"):
        failures.append("runtime")
    if metrics["peak_memory_mb"] > limits["memory_mb"]:
        failures.append("memory")
    if metrics["bubble_ratio"] > limits["bubble_ratio"]:
        failures.append("bubble")
    if metrics["communication_ratio"] > limits["communication_ratio"]:
        failures.append("communication")
    result["eligible"], result["gate_failures"] = not failures, failures
    return result


# %% wrong · whole_megabytes · 不要取整
from copy import deepcopy


def evaluate_internal_parallel_candidate(metrics, limits):
    result, failures = deepcopy(metrics), []
    if metrics.get("failure"):
        failures.append("runtime")
    if int(metrics["peak_memory_mb"]) > limits["memory_mb"]:
        failures.append("memory")
    if metrics["bubble_ratio"] > limits["bubble_ratio"]:
        failures.append("bubble")
    if metrics["communication_ratio"] > limits["communication_ratio"]:
        failures.append("communication")
    result["eligible"], result["gate_failures"] = not failures, failures
    return result


# %% wrong · tolerance · 没有容差
from copy import deepcopy


def evaluate_internal_parallel_candidate(metrics, limits):
    result, failures = deepcopy(metrics), []
    if metrics.get("failure"):
        failures.append("runtime")
    if metrics["peak_memory_mb"] > limits["memory_mb"]:
        failures.append("memory")
    if metrics["bubble_ratio"] > limits["bubble_ratio"] + 0.005:
        failures.append("bubble")
    if metrics["communication_ratio"] > limits["communication_ratio"] + 0.005:
        failures.append("communication")
    result["eligible"], result["gate_failures"] = not failures, failures
    return result


# %% wrong · no_throughput_is_a_failed_run · 吞吐没有
from copy import deepcopy


def evaluate_internal_parallel_candidate(metrics, limits):
    result, failures = deepcopy(metrics), []
    if metrics.get("failure") or not metrics["throughput"]:
        failures.append("runtime")
    if metrics["peak_memory_mb"] > limits["memory_mb"]:
        failures.append("memory")
    if metrics["bubble_ratio"] > limits["bubble_ratio"]:
        failures.append("bubble")
    if metrics["communication_ratio"] > limits["communication_ratio"]:
        failures.append("communication")
    result["eligible"], result["gate_failures"] = not failures, failures
    return result


# %% wrong · one_list_for_all_calls · 每次调用都要新建结果
from copy import deepcopy

failures = []


def evaluate_internal_parallel_candidate(metrics, limits):
    result = deepcopy(metrics)
    failures.clear()
    if metrics.get("failure"):
        failures.append("runtime")
    if metrics["peak_memory_mb"] > limits["memory_mb"]:
        failures.append("memory")
    if metrics["bubble_ratio"] > limits["bubble_ratio"]:
        failures.append("bubble")
    if metrics["communication_ratio"] > limits["communication_ratio"]:
        failures.append("communication")
    result["eligible"], result["gate_failures"] = not failures, failures
    return result
