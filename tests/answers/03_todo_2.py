# Answers to TODO 2 of lesson 03, one a cell: `right · name`, or
# `wrong · name · what the check's Chinese message must hold`.

# %% right · share_of_the_new_block
import math

import torch


def merge(out, lse, new, new_lse):
    blind = (lse == -math.inf) & (new_lse == -math.inf)
    one, two = lse.masked_fill(blind, 0.0), new_lse.masked_fill(blind, 0.0)
    share = torch.sigmoid(two - one)[..., None]
    merged = torch.lerp(out, new, share).masked_fill(blind[..., None], 0.0)
    return merged, torch.logaddexp(one, two).masked_fill(blind, -math.inf)


# %% right · stack_and_softmax
import torch


def merge(out, lse, new, new_lse):
    both = torch.stack((lse, new_lse))
    blind = both.amax(dim=0) == float("-inf")
    both = torch.where(blind, torch.zeros_like(both), both)
    weights = both.softmax(dim=0)
    merged = (weights[..., None] * torch.stack((out, new))).sum(dim=0)
    merged = torch.where(blind[..., None], torch.zeros_like(merged), merged)
    total = torch.where(blind, torch.full_like(lse, float("-inf")), both.logsumexp(dim=0))
    return merged, total


# %% right · big_negative_number_inside
import torch


def merge(out, lse, new, new_lse):
    lowest = torch.finfo(lse.dtype).min / 4
    one, two = lse.clamp(min=lowest), new_lse.clamp(min=lowest)
    total = torch.logaddexp(one, two)
    blind = total < lowest / 2
    merged = out * (one - total).exp().unsqueeze(-1) + new * (two - total).exp().unsqueeze(-1)
    merged = merged.masked_fill(blind.unsqueeze(-1), 0)
    return merged, total.masked_fill(blind, float("-inf"))


# %% right · detached_peak
import torch


def merge(out, lse, new, new_lse):
    with torch.no_grad():
        peak = torch.maximum(lse, new_lse)
        peak = torch.where(peak.isinf(), torch.zeros_like(peak), peak)
    a, b = torch.exp(lse - peak), torch.exp(new_lse - peak)
    some = (a + b) > 0
    norm = torch.where(some, a + b, torch.ones_like(a))
    merged = (out * a[..., None] + new * b[..., None]) / norm[..., None]
    return merged, torch.where(some, peak + norm.log(), torch.full_like(peak, float("-inf")))


# %% wrong · average · 不是各占一半
import torch


def merge(out, lse, new, new_lse):
    return (out + new) / 2, torch.logaddexp(lse, new_lse)


# %% wrong · weighted_by_lse_itself · 各占一半；lse 是 log(1 + 1)
def merge(out, lse, new, new_lse):
    total = lse + new_lse
    return out * (lse / total)[..., None] + new * (new_lse / total)[..., None], total


# %% wrong · weights_swapped · 3 : 1，不是各占一半
import torch


def merge(out, lse, new, new_lse):
    total = torch.logaddexp(lse, new_lse)
    return out * (new_lse - total).exp()[..., None] + new * (lse - total).exp()[..., None], total


# %% wrong · exp_without_the_peak · exp(1000) 会溢出
def merge(out, lse, new, new_lse):
    a, b = lse.exp(), new_lse.exp()
    return (out * a[..., None] + new * b[..., None]) / (a + b)[..., None], (a + b).log()


# %% wrong · clamped_exponent · exp(1000) 会溢出
import torch


def merge(out, lse, new, new_lse):
    a, b = lse.clamp(max=80).exp(), new_lse.clamp(max=80).exp()
    return (out * a[..., None] + new * b[..., None]) / (a + b)[..., None], (a + b).log()


# %% wrong · first_lse_as_the_peak · 小的一边权重是 0
def merge(out, lse, new, new_lse):
    a, b = (lse - new_lse).exp(), 1.0
    return (out * a[..., None] + new * b) / (a + b)[..., None], new_lse + (a + b).log()


# %% wrong · larger_lse_is_kept · 两边的 lse 相等，各占一半
import torch


def merge(out, lse, new, new_lse):
    total = torch.logaddexp(lse, new_lse)
    merged = out * (lse - total).exp()[..., None] + new * (new_lse - total).exp()[..., None]
    return merged, torch.maximum(lse, new_lse)


# %% wrong · not_normalised · 两边的 lse 相等，各占一半
import torch


def merge(out, lse, new, new_lse):
    peak = torch.maximum(lse, new_lse)
    a, b = (lse - peak).exp(), (new_lse - peak).exp()
    return out * a[..., None] + new * b[..., None], peak + (a + b).log()


# %% wrong · nan_where_all_is_masked · 不是 NaN
import torch


def merge(out, lse, new, new_lse):
    total = torch.logaddexp(lse, new_lse)
    merged = out * (lse - total).exp()[..., None] + new * (new_lse - total).exp()[..., None]
    return merged, total


# %% wrong · finite_stand_in_for_minus_infinity · out 是 0，lse 是 −inf
import torch


def merge(out, lse, new, new_lse):
    lse, new_lse = lse.clamp(min=-1e30), new_lse.clamp(min=-1e30)
    total = torch.logaddexp(lse, new_lse)
    merged = out * (lse - total).exp()[..., None] + new * (new_lse - total).exp()[..., None]
    return merged, total


# %% wrong · nan_covered_afterwards · 在 exp 和 log 之前替换
import torch


def merge(out, lse, new, new_lse):
    peak = torch.maximum(lse, new_lse)
    a, b = (lse - peak).exp(), (new_lse - peak).exp()
    merged = (out * a[..., None] + new * b[..., None]) / (a + b)[..., None]
    total = peak + (a + b).log()
    return merged.nan_to_num(0.0), torch.where(total.isnan(), float("-inf"), total)


# %% wrong · where_after_the_fact · 在 exp 和 log 之前替换
import torch


def merge(out, lse, new, new_lse):
    blind = (lse == float("-inf")) & (new_lse == float("-inf"))
    total = torch.logaddexp(lse, new_lse)
    merged = out * (lse - total).exp()[..., None] + new * (new_lse - total).exp()[..., None]
    return torch.where(blind[..., None], torch.zeros_like(out), merged), total


# %% wrong · gradient_cut_off · 不切断
import torch


def merge(out, lse, new, new_lse):
    with torch.no_grad():
        peak = torch.maximum(lse, new_lse)
        peak = peak.masked_fill(peak == float("-inf"), 0)
        a, b = (lse - peak).exp(), (new_lse - peak).exp()
        total = (a + b).masked_fill(a + b == 0, 1)
        blind = a + b == 0
        merged = (out * a[..., None] + new * b[..., None]) / total[..., None]
    return merged, (peak + total.log()).masked_fill(blind, float("-inf"))


# %% wrong · weights_detached · 梯度也等于一次看完所有键
import torch


def merge(out, lse, new, new_lse):
    peak = torch.maximum(lse, new_lse)
    peak = peak.masked_fill(peak == float("-inf"), 0)
    a, b = (lse - peak).exp(), (new_lse - peak).exp()
    blind = a + b == 0
    total = (a + b).masked_fill(blind, 1)
    a, b = (a / total).detach(), (b / total).detach()
    merged = out * a[..., None] + new * b[..., None]
    return merged, (peak + total.log()).masked_fill(blind, float("-inf"))


# %% wrong · in_place · 函数不能改动它的输入
import torch


def merge(out, lse, new, new_lse):
    total = torch.logaddexp(lse, new_lse)
    out.mul_((lse - total).exp()[..., None]).add_(new * (new_lse - total).exp()[..., None])
    lse.copy_(total)
    return out, lse


# %% wrong · only_in_double · 形状和类型不变
import torch


def merge(out, lse, new, new_lse):
    out, lse, new, new_lse = out.double(), lse.double(), new.double(), new_lse.double()
    peak = torch.maximum(lse, new_lse)
    peak = peak.masked_fill(peak == float("-inf"), 0)
    a, b = (lse - peak).exp(), (new_lse - peak).exp()
    blind = a + b == 0
    total = (a + b).masked_fill(blind, 1)
    merged = (out * a[..., None] + new * b[..., None]) / total[..., None]
    return merged, (peak + total.log()).masked_fill(blind, float("-inf"))


# %% wrong · dims_do_not_match · 函数不应抛出异常
import torch


def merge(out, lse, new, new_lse):
    total = torch.logaddexp(lse, new_lse)
    merged = out * (lse - total).exp().squeeze(-1) + new.view(-1, 3) * (new_lse - total).exp()
    return merged, total


# %% wrong · returns_out_alone · 各占一半
import torch


def merge(out, lse, new, new_lse):
    return torch.lerp(out, new, torch.sigmoid(new_lse - lse)[..., None])
