# Answers to TODO 1 of lesson 04, one a cell: `right · name`, or
# `wrong · name · what the check's Chinese message must hold`.

# %% right · comprehension_over_a_table
def validate_mesh_layout(config):
    rules = {
        "pipeline_layers": ("num_layers", "pp"),
        "attention_heads": ("num_heads", "tp"),
        "kv_heads": ("num_kv_heads", "tp"),
        "context_blocks": ("sequence_length", "cp"),
    }
    errors = [
        name
        for name, (size, axis) in rules.items()
        if config.get(size) is not None and config[size] % config[axis]
    ]
    if config["world_size"] != config["pp"] * config["tp"] * config["cp"]:
        errors.append("mesh_product")
    return {"valid": len(errors) == 0, "errors": errors}


# %% right · divmod_and_reversed_order
def validate_mesh_layout(config):
    import math

    found = []

    def splits(size, parts):
        return divmod(size, parts)[1] == 0

    if not splits(config["sequence_length"], config["cp"]):
        found.insert(0, "context_blocks")
    if (
        "num_kv_heads" in config
        and config["num_kv_heads"] is not None
        and not splits(config["num_kv_heads"], config["tp"])
    ):
        found.insert(0, "kv_heads")
    if not splits(config["num_heads"], config["tp"]):
        found.insert(0, "attention_heads")
    if not splits(config["num_layers"], config["pp"]):
        found.insert(0, "pipeline_layers")
    if math.prod(config[axis] for axis in ("pp", "tp", "cp")) != config["world_size"]:
        found.insert(0, "mesh_product")
    return {"errors": found, "valid": found == []}


# %% right · set_then_list
def validate_mesh_layout(config):
    pp, tp, cp = config["pp"], config["tp"], config["cp"]
    broken = set()
    if (pp * tp * cp) - config["world_size"]:
        broken |= {"mesh_product"}
    if config["num_layers"] // pp * pp != config["num_layers"]:
        broken |= {"pipeline_layers"}
    if config["num_heads"] // tp * tp != config["num_heads"]:
        broken |= {"attention_heads"}
    kv = config.get("num_kv_heads") or tp
    if kv // tp * tp != kv:
        broken |= {"kv_heads"}
    if config["sequence_length"] // cp * cp != config["sequence_length"]:
        broken |= {"context_blocks"}
    return {"valid": not broken, "errors": sorted(broken)}


# %% right · module_helper
def _left_over(size, parts):
    return size % parts


def validate_mesh_layout(config):
    errors = []
    errors += ["mesh_product"] * (
        config["pp"] * config["tp"] * config["cp"] != config["world_size"]
    )
    errors += ["pipeline_layers"] * (_left_over(config["num_layers"], config["pp"]) > 0)
    errors += ["attention_heads"] * (_left_over(config["num_heads"], config["tp"]) > 0)
    if config.get("num_kv_heads") is not None:
        errors += ["kv_heads"] * (_left_over(config["num_kv_heads"], config["tp"]) > 0)
    errors += ["context_blocks"] * (_left_over(config["sequence_length"], config["cp"]) > 0)
    return {"valid": not errors, "errors": errors}


# %% wrong · always_valid · 30 ≠ 31
def validate_mesh_layout(config):
    return {"valid": True, "errors": []}


# %% wrong · always_all_errors · errors 应为空
def validate_mesh_layout(config):
    errors = ["mesh_product", "pipeline_layers", "attention_heads", "kv_heads", "context_blocks"]
    return {"valid": not errors, "errors": errors}


# %% wrong · first_error_only · 5 个名字都要报告
def validate_mesh_layout(config):
    kv = config.get("num_kv_heads")
    errors = []
    if config["pp"] * config["tp"] * config["cp"] != config["world_size"]:
        errors.append("mesh_product")
    elif config["num_layers"] % config["pp"]:
        errors.append("pipeline_layers")
    elif config["num_heads"] % config["tp"]:
        errors.append("attention_heads")
    elif kv is not None and kv % config["tp"]:
        errors.append("kv_heads")
    elif config["sequence_length"] % config["cp"]:
        errors.append("context_blocks")
    return {"valid": not errors, "errors": errors}


# %% wrong · world_may_be_larger · 30 ≠ 31
def validate_mesh_layout(config):
    kv = config.get("num_kv_heads")
    errors = []
    if config["pp"] * config["tp"] * config["cp"] > config["world_size"]:
        errors.append("mesh_product")
    if config["num_layers"] % config["pp"]:
        errors.append("pipeline_layers")
    if config["num_heads"] % config["tp"]:
        errors.append("attention_heads")
    if kv is not None and kv % config["tp"]:
        errors.append("kv_heads")
    if config["sequence_length"] % config["cp"]:
        errors.append("context_blocks")
    return {"valid": not errors, "errors": errors}


# %% wrong · product_divides_world · 30 整除 60，但不等于 60
def validate_mesh_layout(config):
    kv = config.get("num_kv_heads")
    errors = []
    if config["world_size"] % (config["pp"] * config["tp"] * config["cp"]):
        errors.append("mesh_product")
    if config["num_layers"] % config["pp"]:
        errors.append("pipeline_layers")
    if config["num_heads"] % config["tp"]:
        errors.append("attention_heads")
    if kv is not None and kv % config["tp"]:
        errors.append("kv_heads")
    if config["sequence_length"] % config["cp"]:
        errors.append("context_blocks")
    return {"valid": not errors, "errors": errors}


# %% wrong · sum_of_axes · errors 应为空
def validate_mesh_layout(config):
    kv = config.get("num_kv_heads")
    errors = []
    if config["pp"] + config["tp"] + config["cp"] != config["world_size"]:
        errors.append("mesh_product")
    if config["num_layers"] % config["pp"]:
        errors.append("pipeline_layers")
    if config["num_heads"] % config["tp"]:
        errors.append("attention_heads")
    if kv is not None and kv % config["tp"]:
        errors.append("kv_heads")
    if config["sequence_length"] % config["cp"]:
        errors.append("context_blocks")
    return {"valid": not errors, "errors": errors}


# %% wrong · without_kv_heads · 1 个 KV 头不能分给 tp = 3
def validate_mesh_layout(config):
    errors = []
    if config["pp"] * config["tp"] * config["cp"] != config["world_size"]:
        errors.append("mesh_product")
    if config["num_layers"] % config["pp"] != 0:
        errors.append("pipeline_layers")
    if config["num_heads"] % config["tp"] != 0:
        errors.append("attention_heads")
    if config["sequence_length"] % config["cp"] != 0:
        errors.append("context_blocks")
    return {"valid": not errors, "errors": errors}


# %% wrong · kv_heads_required · 恰好报告不满足的规则
def validate_mesh_layout(config):
    errors = []
    if config["pp"] * config["tp"] * config["cp"] != config["world_size"]:
        errors.append("mesh_product")
    if config["num_layers"] % config["pp"]:
        errors.append("pipeline_layers")
    if config["num_heads"] % config["tp"]:
        errors.append("attention_heads")
    if config.get("num_kv_heads", 1) is not None and config.get("num_kv_heads", 1) % config["tp"]:
        errors.append("kv_heads")
    if config["sequence_length"] % config["cp"]:
        errors.append("context_blocks")
    return {"valid": not errors, "errors": errors}


# %% wrong · key_error_without_kv_heads · KeyError: 'num_kv_heads'
def validate_mesh_layout(config):
    errors = []
    if config["pp"] * config["tp"] * config["cp"] != config["world_size"]:
        errors.append("mesh_product")
    if config["num_layers"] % config["pp"]:
        errors.append("pipeline_layers")
    if config["num_heads"] % config["tp"]:
        errors.append("attention_heads")
    if config["num_kv_heads"] is not None and config["num_kv_heads"] % config["tp"]:
        errors.append("kv_heads")
    if config["sequence_length"] % config["cp"]:
        errors.append("context_blocks")
    return {"valid": not errors, "errors": errors}


# %% wrong · none_breaks_it · TypeError
def validate_mesh_layout(config):
    errors = []
    if config["pp"] * config["tp"] * config["cp"] != config["world_size"]:
        errors.append("mesh_product")
    if config["num_layers"] % config["pp"]:
        errors.append("pipeline_layers")
    if config["num_heads"] % config["tp"]:
        errors.append("attention_heads")
    if "num_kv_heads" in config and config["num_kv_heads"] % config["tp"]:
        errors.append("kv_heads")
    if config["sequence_length"] % config["cp"]:
        errors.append("context_blocks")
    return {"valid": not errors, "errors": errors}


# %% wrong · kv_replication_allowed · 1 个 KV 头不能分给 tp = 3
def validate_mesh_layout(config):
    kv, tp = config.get("num_kv_heads"), config["tp"]
    errors = []
    if config["pp"] * tp * config["cp"] != config["world_size"]:
        errors.append("mesh_product")
    if config["num_layers"] % config["pp"]:
        errors.append("pipeline_layers")
    if config["num_heads"] % tp:
        errors.append("attention_heads")
    if kv is not None and kv % tp and tp % kv:
        errors.append("kv_heads")
    if config["sequence_length"] % config["cp"]:
        errors.append("context_blocks")
    return {"valid": not errors, "errors": errors}


# %% wrong · axes_swapped · errors 应为空
def validate_mesh_layout(config):
    kv = config.get("num_kv_heads")
    errors = []
    if config["pp"] * config["tp"] * config["cp"] != config["world_size"]:
        errors.append("mesh_product")
    if config["num_layers"] % config["tp"]:
        errors.append("pipeline_layers")
    if config["num_heads"] % config["pp"]:
        errors.append("attention_heads")
    if kv is not None and kv % config["tp"]:
        errors.append("kv_heads")
    if config["sequence_length"] % config["cp"]:
        errors.append("context_blocks")
    return {"valid": not errors, "errors": errors}


# %% wrong · zigzag_needs_two_cp · errors 应为空
def validate_mesh_layout(config):
    kv = config.get("num_kv_heads")
    errors = []
    if config["pp"] * config["tp"] * config["cp"] != config["world_size"]:
        errors.append("mesh_product")
    if config["num_layers"] % config["pp"]:
        errors.append("pipeline_layers")
    if config["num_heads"] % config["tp"]:
        errors.append("attention_heads")
    if kv is not None and kv % config["tp"]:
        errors.append("kv_heads")
    if config["sequence_length"] % (2 * config["cp"]):
        errors.append("context_blocks")
    return {"valid": not errors, "errors": errors}


# %% wrong · less_than_instead_of_divides · 15 层分给 pp = 2
def validate_mesh_layout(config):
    kv = config.get("num_kv_heads")
    errors = []
    if config["pp"] * config["tp"] * config["cp"] != config["world_size"]:
        errors.append("mesh_product")
    if config["num_layers"] < config["pp"]:
        errors.append("pipeline_layers")
    if config["num_heads"] < config["tp"]:
        errors.append("attention_heads")
    if kv is not None and kv < config["tp"]:
        errors.append("kv_heads")
    if config["sequence_length"] < config["cp"]:
        errors.append("context_blocks")
    return {"valid": not errors, "errors": errors}


# %% wrong · errors_as_tuple · 5 条规则都满足
def validate_mesh_layout(config):
    kv, errors = config.get("num_kv_heads"), ()
    if config["pp"] * config["tp"] * config["cp"] != config["world_size"]:
        errors += ("mesh_product",)
    if config["num_layers"] % config["pp"]:
        errors += ("pipeline_layers",)
    if config["num_heads"] % config["tp"]:
        errors += ("attention_heads",)
    if kv is not None and kv % config["tp"]:
        errors += ("kv_heads",)
    if config["sequence_length"] % config["cp"]:
        errors += ("context_blocks",)
    return {"valid": not errors, "errors": errors}


# %% wrong · only_a_bool · 应返回 dict，不是 bool
def validate_mesh_layout(config):
    return config["pp"] * config["tp"] * config["cp"] == config["world_size"]


# %% wrong · returns_nothing · 是不是忘了 return
def validate_mesh_layout(config):
    print(config["pp"] * config["tp"] * config["cp"] == config["world_size"])


# %% wrong · names_twice · 30 ≠ 31
def validate_mesh_layout(config):
    kv = config.get("num_kv_heads")
    errors = []
    if config["pp"] * config["tp"] * config["cp"] != config["world_size"]:
        errors += ["mesh_product", "mesh_product"]
    if config["num_layers"] % config["pp"]:
        errors.append("pipeline_layers")
    if config["num_heads"] % config["tp"]:
        errors.append("attention_heads")
    if kv is not None and kv % config["tp"]:
        errors.append("kv_heads")
    if config["sequence_length"] % config["cp"]:
        errors.append("context_blocks")
    return {"valid": not errors, "errors": errors}


# %% wrong · changes_the_config · 不能改动它的输入
def validate_mesh_layout(config):
    config.setdefault("num_kv_heads", config["num_heads"])
    config["tags"] = []
    return {"valid": True, "errors": []}


# %% wrong · changes_a_nested_value · 不能改动它的输入
def validate_mesh_layout(config):
    config.get("tags", []).append("checked")
    return {"valid": True, "errors": []}


# %% wrong · hard_coded_for_the_specification · 15 层分给 pp = 2
def validate_mesh_layout(config):
    errors = []
    if config["world_size"] != config["pp"] * config["tp"] * config["cp"]:
        errors.append("mesh_product")
    if config["num_heads"] == 15:
        errors.append("attention_heads")
    return {"valid": not errors, "errors": errors}


# %% wrong · lookup_of_the_shown_cases · 三个轴可以一样大
def validate_mesh_layout(config):
    shown = {
        ("world_size", 30): None,
        ("num_layers", 15): "pipeline_layers",
        ("num_heads", 20): "attention_heads",
        ("num_kv_heads", 8): "kv_heads",
        ("num_kv_heads", 1): "kv_heads",
        ("sequence_length", 36): "context_blocks",
    }
    errors = [shown[item] for item in config.items() if item[0] != "tags" and shown.get(item)]
    if config["world_size"] != 30:
        errors.append("mesh_product")
    return {"valid": not errors, "errors": errors}


# %% wrong · equal_to_anything · 应返回 dict，不是 Anything
class Anything(dict):
    def __eq__(self, other):
        return True

    def __getitem__(self, key):
        return self


def validate_mesh_layout(config):
    return Anything()


# %% wrong · relies_on_key_order · 恰好报告不满足的规则
def validate_mesh_layout(config):
    world, pp, tp, cp, layers, heads, *rest = config.values()
    kv, sequence = (rest[0], rest[1]) if "num_kv_heads" in config else (None, rest[0])
    errors = []
    if "num_kv_heads" not in config and list(config)[0] != "world_size":
        errors.append("mesh_product")
    elif pp * tp * cp != world:
        errors.append("mesh_product")
    if not errors or "num_kv_heads" in config:
        if layers % pp:
            errors.append("pipeline_layers")
        if heads % tp:
            errors.append("attention_heads")
        if kv is not None and kv % tp:
            errors.append("kv_heads")
        if sequence % cp:
            errors.append("context_blocks")
    return {"valid": not errors, "errors": errors}


# %% wrong · sizes_hard_coded · 三个轴可以一样大
def validate_mesh_layout(config):
    errors = []
    try:
        if config["world_size"] not in (30,):
            errors.append("mesh_product")
        for name, size, axis in (
            ("pipeline_layers", "num_layers", 2),
            ("attention_heads", "num_heads", 3),
            ("kv_heads", "num_kv_heads", 3),
            ("context_blocks", "sequence_length", 5),
        ):
            if config.get(size) is not None and config[size] % axis:
                errors.append(name)
    except Exception:
        pass
    return {"valid": not errors, "errors": errors}


# %% right · helper_with_a_name_that_the_check_uses_too
def good(size, parts):
    return size % parts == 0


names = {
    "pipeline_layers": ("num_layers", "pp"),
    "attention_heads": ("num_heads", "tp"),
    "context_blocks": ("sequence_length", "cp"),
}


def check(config):
    return [name for name, (size, axis) in names.items() if not good(config[size], config[axis])]


def same(one, other):
    return one == other


def validate_mesh_layout(config):
    errors = check(config)
    if not same(config["pp"] * config["tp"] * config["cp"], config["world_size"]):
        errors.append("mesh_product")
    if config.get("num_kv_heads") is not None and not good(config["num_kv_heads"], config["tp"]):
        errors.append("kv_heads")
    return {"valid": not errors, "errors": errors}


# %% right · callable_object
class Validator:
    def __call__(self, config):
        errors = [
            name
            for name, bad in (
                ("mesh_product", config["pp"] * config["tp"] * config["cp"] - config["world_size"]),
                ("pipeline_layers", config["num_layers"] % config["pp"]),
                ("attention_heads", config["num_heads"] % config["tp"]),
                ("kv_heads", (config.get("num_kv_heads") or 0) % config["tp"]),
                ("context_blocks", config["sequence_length"] % config["cp"]),
            )
            if bad
        ]
        return {"valid": not errors, "errors": errors}


validate_mesh_layout = Validator()


# %% wrong · stops_where_kv_heads_are_missing · 恰好报告不满足的规则
def validate_mesh_layout(config):
    errors = []
    if config["pp"] * config["tp"] * config["cp"] != config["world_size"]:
        errors.append("mesh_product")
    if config["num_layers"] % config["pp"]:
        errors.append("pipeline_layers")
    if config["num_heads"] % config["tp"]:
        errors.append("attention_heads")
    try:
        if config["num_kv_heads"] % config["tp"]:
            errors.append("kv_heads")
        if config["sequence_length"] % config["cp"]:
            errors.append("context_blocks")
    except (KeyError, TypeError):
        pass
    return {"valid": not errors, "errors": errors}


# %% wrong · product_of_a_set · 三个轴可以一样大
def validate_mesh_layout(config):
    import math

    kv = config.get("num_kv_heads")
    errors = []
    if math.prod({config["pp"], config["tp"], config["cp"]}) != config["world_size"]:
        errors.append("mesh_product")
    if config["num_layers"] % config["pp"]:
        errors.append("pipeline_layers")
    if config["num_heads"] % config["tp"]:
        errors.append("attention_heads")
    if kv is not None and kv % config["tp"]:
        errors.append("kv_heads")
    if config["sequence_length"] % config["cp"]:
        errors.append("context_blocks")
    return {"valid": not errors, "errors": errors}


# %% wrong · nearly_divides · 恰好报告不满足的规则
def validate_mesh_layout(config):
    def splits(size, parts):
        return abs(size / parts - round(size / parts)) < 0.1

    kv = config.get("num_kv_heads")
    errors = []
    if config["pp"] * config["tp"] * config["cp"] != config["world_size"]:
        errors.append("mesh_product")
    if not splits(config["num_layers"], config["pp"]):
        errors.append("pipeline_layers")
    if not splits(config["num_heads"], config["tp"]):
        errors.append("attention_heads")
    if kv is not None and not splits(kv, config["tp"]):
        errors.append("kv_heads")
    if not splits(config["sequence_length"], config["cp"]):
        errors.append("context_blocks")
    return {"valid": not errors, "errors": errors}


# %% wrong · axis_of_one_refused · 一个 rank 也是网格
def validate_mesh_layout(config):
    kv = config.get("num_kv_heads")
    errors = []
    if (
        config["pp"] * config["tp"] * config["cp"] != config["world_size"]
        or config["world_size"] < 2
    ):
        errors.append("mesh_product")
    if config["num_layers"] % config["pp"]:
        errors.append("pipeline_layers")
    if config["num_heads"] % config["tp"]:
        errors.append("attention_heads")
    if kv is not None and kv % config["tp"]:
        errors.append("kv_heads")
    if config["sequence_length"] % config["cp"]:
        errors.append("context_blocks")
    return {"valid": not errors, "errors": errors}


# %% wrong · one_list_for_all_calls · 每次调用都要新建结果
errors = []


def validate_mesh_layout(config):
    errors.clear()
    kv = config.get("num_kv_heads")
    if config["pp"] * config["tp"] * config["cp"] != config["world_size"]:
        errors.append("mesh_product")
    if config["num_layers"] % config["pp"]:
        errors.append("pipeline_layers")
    if config["num_heads"] % config["tp"]:
        errors.append("attention_heads")
    if kv is not None and kv % config["tp"]:
        errors.append("kv_heads")
    if config["sequence_length"] % config["cp"]:
        errors.append("context_blocks")
    return {"valid": not errors, "errors": errors}


# %% wrong · exception_that_cannot_be_shown · str() raised
class Odd(Exception):
    def __str__(self):
        raise ValueError


def validate_mesh_layout(config):
    raise Odd


# %% wrong · reads_the_check_s_variables · NameError
def validate_mesh_layout(config):
    return {"valid": not broken, "errors": broken}
