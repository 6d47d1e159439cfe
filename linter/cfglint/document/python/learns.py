"""What a step of a program learns from: the samples that its loss compares, the micro-batches that it adds.

Both are asked of the text of the program and of the modules of its project that it leads to: a loss that
takes the other samples of a micro-batch as its negatives is another one for half of the micro-batch,
whatever is accumulated, and a program that borrows a framework's flags need not accumulate at all.
"""

from __future__ import annotations

import os
import re

from cfglint.document.python.steps import counts_micro
from cfglint.document.python.totals import loads_passes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from cfglint.document.python.modules import Modules
    from cfglint.document.tree import File

RANKS, BATCH = "ranks", "batch"  # whose samples a loss compares
ALL, SOME = "all", "some"  # of the processes share each sequence
# A loop that takes a step at every so many passes, and what divides its loss by them: an engine by itself.
_EVERY = re.compile(r"(?i)%\s*[\w.]*(?:accum|update_freq)\w*\s*\)?\s*(?:==|!=|>)")
_BACKWARD = re.compile(r"(?i)loss\w*(?:\.\w+\(\))?\)?\.backward\(|booster\.backward\(")
_DIVIDES = re.compile(
    r"(?i)(?:loss|backward|scal)[^\n]*(?<!/)/=?\s*[\w.(]*(?:accum|update_freq)|\bscale_grads"
)
_ENGINE = re.compile(r"\baccelerator\.backward\(|\bAccelerator\(|\bdeepspeed\.initialize\(")
# A loss over what all processes take at a time: times their number, as gradients are their mean.
_OVER_RANKS = re.compile(
    r"(?m)^[^\n]*\b(?:\w*loss|labels?|loss_weights?)\b(?![^\n]*(?:accum|\.item\())[^\n]*"
    r"\*=?\s*[\w.(]*\b(?:device_count|get_world_size|world_size|num_processes|num_gpus|n_gpus?)\b"
)
# A branch for one pass alone, and gradients that are set to zero as often as a loss is gone back through.
_ONE_APART = re.compile(  # what only clears the gradients of the step before does nothing otherwise
    r"(?im)^([ \t]*)(?:el)?if [^\n]*\b\w*(?:accum|update_freq)\w*\s*(?:[=!]=\s*1|<\s*2)\b"
    r"(?![^\n]*:\s*[\w.]*\bzero_grad\([^\n]*\n(?:[ \t]*\n)*(?!\1(?:[ \t]|el)))"
)
_FORGETS = re.compile(
    r"(?m)^([ \t]+)[\w.]*zero_grad\([^\n]*\n(?:(?:\1[ \t]*[^\s][^\n]*|[ \t]*)\n)*?\1[^\n ]*\.backward\("
)
_WHOLE_STEP = re.compile(r"\bnum_items_in_batch\b")  # of all its micro-batches
# A loss that is a mean over a pass's tokens: the model's own, torch's default, and one by a mask.
_MEAN = re.compile(
    r"""(?i)\bloss\w*\s*[+:]?=[^\n]*(?:\.loss\b|\[["']loss["']\])|\bloss\s*=\s*(?:\w+\([^\n]*\)|outputs?)\[0\]"""
    r"""|(?:\bCrossEntropyLoss|\bcross_entropy)\((?![^()]*(?:\([^()]*\)[^()]*)*\breduction\s*=)"""
    r"""|/\s*\(?[\w.]*mask\w*\.sum\(\)"""
)
# Labels that do not count, of which samples have more or fewer, and blocks of text without any.
_UNCOUNTED = re.compile(
    r"(?i)(?<![\w.])-100\b|\bignore_(?:index|token)|\b(?:loss|label|completion)_?masks?\b"
)
_PADS = re.compile(r"\bDataCollatorFor(?:Seq2Seq|LanguageModeling|Completion)")
_BLOCKS = re.compile(r"\bgroup_texts\b|\bConstantLengthDataset\b")
_BY_TOKENS = re.compile(
    r"""(?i)\bloss\w*[^\n]*[*/][^\n]*\b\w*tokens?\b|\breduction\s*=\s*["']sum["']|\bnum_items_in_batch\b"""
)
# Programs whose loss is one a pair, or one a sample, by their names.
_OF_PAIRS = re.compile(r"(?i)reward|(?<![a-z])(?:rm|prm|orm)(?![a-z])|dpo|kto|simpo|classif")
# An actor that divides a micro-batch's loss by their number: a mean of means (verl's until v0.7; its copies).
_ACTOR = re.compile(r"(?m)^[ \t]+def update_policy\(")
_BY_PASSES = re.compile(r"(?m)^[^#\n]*(?<!/)/\s*self\.gradient_accumulation\b")
_TAKES_IT = re.compile(
    r"\bnum_items_in_batch\b[^\n,)]*(?=[,)\s]*(?:\*\*\w+[,\s]*)?\)[^\n()]*:\s*\n)"
)  # last, to do nothing
# What a model or a trainer makes a loss of: its text up to the next one, its last parameter of any name.
_LOSS = re.compile(
    r"(?ms)^[ \t]+def (forward|compute_loss)\(([^()]*(?:\([^()]*\)[^()]*)*)\)[^\n]*:[ \t]*\n"
    r"(.*?)(?=^[ \t]*(?:def|class|@\w+) ?|\Z)"
)
_ENTROPY = re.compile(r"\bCrossEntropyLoss\(|\bcross_entropy\(")
_OF_TOKENS = re.compile(r"\bvocab_size\b|\[(?:\.\.\.|:), 1:\]")
_HANDS_ON = re.compile(
    r"\b(?:forward|model|lm|llm|language_model|\w+_model)\((?s:[^()]|\([^()]*\))*?\blabels=\w*labels\b"
)
# Adapters around a model, and what gives a layer that is recomputed inputs with gradients, or needs none.
_WRAPS = re.compile(r"(?<![\w.])get_peft_model\(")
_FEEDS_ALL = re.compile(r"require_grads|gradient_checkpointing_enable\(|use_reentrant|modules_to_save=\[")
_FEEDS = re.compile(rf"{_FEEDS_ALL.pattern}|prepare_model_for_")
_PREPARES = re.compile(r"\bprepare_model_for_\w+\(")
_PREPARES_FEW = re.compile(
    r"(?m)^([ \t]*)if [^\n]*(?:bit|quant|qlora|[48]b)[^\n]*:(?:\n\1[ \t][^\n]*)*?\bprepare_model_for_\w+\("
)
# What a model's own code does by itself (Tencent-Hunyuan-Large @main models/modeling_hunyuan.py:1318-1320).
_FEEDS_ITSELF = re.compile(r"\b(?:\w*embed\w*|hidden_states)\.requires_grad(?:_\(|\s*=\s*True)")
# Liger's kernels, which a program puts into a model's code by itself, its fused loss among them.
_LIGER = re.compile(r"(?m)^apply_liger_kernel_to_\w+\((?![^()]*fused_linear_cross_entropy\s*=\s*False)")
# Kernels without that loss, as a program has them that takes the logits itself.
_KEEPS = re.compile(r"""\bfused_linear_cross_entropy["']?\s*[=:]\s*False\b""")
_FUSES = re.compile(r"""\bfused_linear_cross_entropy["']?\s*[=:]\s*True\b""")
_WHEN_TOLD = re.compile(r"(?m)^[ \t]*if (?:training_args|train_args|args)\.do_train\b")
_REMOTE = re.compile(r"\btrust_remote_code\s*=\s*(?!False)")
_USED = re.compile(r"find_unused_parameters|use_reentrant")
# A file that a program writes what it was told to, and one that it reads.
_WRITES = re.compile(r"""\bopen\(\s*args\.(config(?:_file|_path)?)\s*,\s*["']w""")
_OPENS = re.compile(r"""(?:open|load|read|from)\w*\(\s*args\.config\w*\s*(?:\)|,(?!\s*["']w))""")
_GATHERS = re.compile(
    r"(?i)\ball_?gather|Gather(?:Layer|Tensor|Features)?\.apply|gather_(?:tensor|features)\b"
)
_CONTRASTS = re.compile(r"(?i)\bcontrastive|\b(?:loss_)?itc\b|_itc\b|info_?nce|logit_scale|cross_device_neg")
_IN_BATCH = re.compile(
    r"(?i)\bin_?batch_?neg|_in_?batch_?neg|\b(?:Multiple|Symmetric)\w*NegativesRankingLoss|\binfo_?nce(?:_?loss)?\("
)
_TOWER = re.compile(r"(?i)encoder|tower|clip")  # folders of what was trained so, and is but used
_SWITCH = re.compile(r"\b(?:self|args|training_args)\.negatives?_cross_device\b")
_SAYS_PASSES = re.compile(r"""\[["']gradient_accumulation_steps["']\]\s*=\s*\w*args\.grad""")
_SAYS_SIZES = re.compile(
    r"""\[["'](?:train_micro_batch_size_per_gpu|train_batch_size)["']\]\s*=(?!=)"""
    r"""|["'](?:train_micro_batch_size_per_gpu|train_batch_size)["']\s*:"""
)
_TAKES_SIZES = re.compile(r"\btraining_data\s*=(?!=)|\btrain_micro_batch_size_per_gpu\b|\bdeepspeed_io\(")
_TAKES_PASSES = re.compile(
    r"""\bargs\.gradient_accumulation_steps\s*=[^=\n]*["']gradient_accumulation_steps["']"""
)
# A trainer of answers in groups, and one that stops where its processes' micro-batches are no whole groups.
_GROUPS = re.compile(r"(?m)^class \w*Trainer\b[^\n]*:$(?s:.*?)\bself\.num_generations\s*=")
# Ring attention, as EasyContext's and LongVILA's programs do it: each process has a part of a sequence.
_RING = re.compile(r"\bextract_local\(|\bprepare_seq_parallel_inputs\(|\bring_flash_attn\b")
_PART = re.compile(r"(?<!def )\bextract_local\(\s*[^,]+,\s*(\w+),\s*(\w+)")  # of a rank, and of how many
_WORLD = re.compile(r"\b(\w+)\s*=\s*(?:torch\.)?dist(?:ributed)?\.(?:get_rank|get_world_size)\(\)")
_MICRO = r"args\.per_device_train_batch_size"
_BOTH = rf"{_MICRO}\s*\*\s*num_processes|num_processes\s*\*\s*{_MICRO}"
_WHOLE = re.compile(
    rf"\b(\w+)\s*=\s*(?:{_BOTH})\s+(\w+)\s*=\s*\[[^\]]*\bin range\([^\]]*\bif \(?\1\)?\s*%[^\]]*\]\s+"
    r"if self\.num_generations not in \2:\s+raise ValueError\("
)
# One that makes all answers of each of its prompts in the process that has them, beside a reference.
_REPEATS = re.compile(r"\bprompt_mask\.repeat_interleave\(\s*self\.num_generations\b")
_REFERS = re.compile(r"(?m)^ *elif peft_config is None:\s+self\.ref_model = create_reference_model\(")
_SAMPLER = re.compile(r"\bfrom vllm import|\bself\.llm\b")
_ONE_PASS = re.compile(r"(?m)^def get_num_microbatches\([^)]*\)[^:\n]*:\s+(?:[\"'][^\n]*\s+)?return 1\s*$")


def compares(program: File, project: Modules) -> str:
    """Return whose samples a loss compares: those of all `RANKS`, or of a `BATCH` alone; empty for none.

    Where a flag decides whether the others' count, those of a micro-batch do in any case.
    """
    found = ""
    for path, text in _texts(program, project):
        if path != program.path and _TOWER.search(os.path.dirname(path)):
            continue
        if _GATHERS.search(text) and _CONTRASTS.search(text) and not _SWITCH.search(text):
            return RANKS
        if _IN_BATCH.search(text) or _SWITCH.search(text):
            found = BATCH
    return found


def accumulates(program: File, project: Modules) -> bool:
    """Whether a program that takes Megatron's flags may make several micro-batches of a step."""
    return not any(_ONE_PASS.search(text) for _, text in _texts(program, project))


def only_writes_config(text: str) -> bool:
    """Whether a program writes a file that its command names as a config, and reads none."""
    return _WRITES.search(text) is not None and _OPENS.search(text) is None


def sums_losses(program: File, project: Modules) -> bool:
    """Whether a loop adds up its passes' gradients as they are: twice the passes make them twice as large."""
    texts = [text for _, text in _texts(program, project)]
    loops = [text for text in texts if _EVERY.search(text) and _BACKWARD.search(text)]
    return any(not _DIVIDES.search(text) and not _ENGINE.search(text) for text in loops)


def passes_apart(program: File, project: Modules) -> bool:
    """Whether a loop of one's own does otherwise with one pass, or forgets the gradients of all but the last.

    What nobody has run with more passes is no way to keep a batch.
    """
    texts = [text for _, text in _texts(program, project)]
    loops = [text for text in texts if _EVERY.search(text) and _BACKWARD.search(text)]
    own = [text for text in loops if not _ENGINE.search(text)]
    return any(_ONE_APART.search(text) or _FORGETS.search(text) for text in own)


def averages_over_ranks(program: File, project: Modules) -> bool:
    """Whether a loss is a mean over what all processes take at a time: of fewer, each weighs more in it.

    LongAlign's main.py:68, whose dataset.py:31 adds up the weights of as many packs as there are GPUs; VILA's
    llava/train/utils.py:149-165. A mean over all of a step's passes stays.
    """
    texts = [text for _, text in _texts(program, project)]
    return any(_OVER_RANKS.search(text) and not _WHOLE_STEP.search(text) for text in texts)


def averages_over_tokens(program: File, project: Modules) -> bool:
    """Whether a loop of one's own takes the mean over the tokens that count in a pass, of unequal samples.

    Divided by the passes, it weighs each sample by the others of its pass. What divides by tokens may count
    those of all passes. A loop of which none of this is to be read stays unknown.
    """
    if _OF_PAIRS.search("/".join(program.path.replace(os.sep, "/").split("/")[-2:])):
        return False
    texts = [text for _, text in _texts(program, project)]
    loops = [text for text in texts if ".backward(" in text]
    if not any(_MEAN.search(text) for text in loops) or any(_BY_TOKENS.search(text) for text in loops):
        return False
    if any(_UNCOUNTED.search(text) for text in texts):
        return True
    return any(_PADS.search(text) for text in texts) and not any(_BLOCKS.search(text) for text in texts)


def averages_micro(program: File, project: Modules) -> bool:
    """Whether an actor of the project's own adds up means over what its micro-batches hold.

    So a smaller one weighs its tokens otherwise, whichever release of its framework lies beside it.
    """
    return any(_ACTOR.search(text) and _BY_PASSES.search(text) for _, text in _texts(program, project))


def means_tokens(program: File, project: Modules) -> bool:
    """Whether a model or a trainer of its own has a mean over a micro-batch's tokens in any version.

    transformers' Trainer tells a model how many tokens a step has where its forward takes any argument
    (transformers/trainer.py @v4.53.0:642); what does not pass that on has the mean of what it is given.
    """
    texts = [_TAKES_IT.sub("", text) for _, text in _texts(program, project)]
    if any(_WHOLE_STEP.search(text) for text in texts):
        return False
    return any(_is_mean(*found) for text in texts for found in _LOSS.findall(text))


def _is_mean(name: str, takes: str, body: str) -> bool:
    """Whether a model's ``forward`` or a trainer's ``compute_loss`` has a mean over tokens."""
    if _ENTROPY.search(body) is not None:
        return ("labels" in takes or "inputs" in takes) and _OF_TOKENS.search(body) is not None
    return name == "forward" and "labels" in takes and "**" not in takes and bool(_HANDS_ON.search(body))


def starves_adapters(program: File, project: Modules) -> bool:
    """Whether a program puts adapters around a model whose inputs need no gradients.

    A reentrant checkpoint gives none to what it recomputes then. PEFT makes inputs need them where layers are
    recomputed before that (peft/peft_model.py:183-184), and native adapters have transformers do so. So may
    the model's own code, which is the program's, or lies in the project for a checkpoint to bring.
    """
    return _starves(program, project, _FEEDS)


def starves_unless_quantized(program: File, project: Modules) -> bool:
    """Whether it does so where its weights are not quantized, and prepares them alone where they are."""
    prepared = [text for _, text in _texts(program, project) if "prepare_model_for_" in text]
    alone = all(len(_PREPARES.findall(text)) == len(_PREPARES_FEW.findall(text)) for text in prepared)
    return bool(prepared) and alone and _starves(program, project, _FEEDS_ALL)


def _starves(program: File, project: Modules, mended: re.Pattern[str]) -> bool:
    if not _wraps(program, project, mended):
        return False
    texts = [text for _, text in _texts(program, project)]
    if any(map(_REMOTE.search, texts)):
        texts += project.modelings(program)
    return not any(map(_FEEDS_ITSELF.search, texts))


def finds_unused(program: File, project: Modules) -> bool:
    """Whether Trainer looks for unused parameters in a program's model: in any that is not transformers'."""
    return _wraps(program, project, _USED)


def applies_liger(program: File, project: Modules) -> bool:
    """Whether a program puts Liger's kernels, with their loss, into a model wherever it runs."""
    return any(_LIGER.search(text) for _, text in _texts(program, project))


def keeps_logits(program: File, project: Modules) -> bool:
    """Whether a program turns the loss among Liger's kernels off wherever it names it: its logits stay."""
    texts = [text for _, text in _texts(program, project)]
    return any(map(_KEEPS.search, texts)) and not any(map(_FUSES.search, texts))


def trains_when_told(program: File, _: Modules) -> bool:
    """Whether a program trains where do_train says so, as those of transformers' examples do."""
    return _WHEN_TOLD.search(program.text) is not None


def _wraps(program: File, project: Modules, mended: re.Pattern[str]) -> bool:
    texts = [text for _, text in _texts(program, project)]
    return any(map(_WRAPS.search, texts)) and not any(map(mended.search, texts))


def splits_sequences(program: File, project: Modules) -> str:
    """Return which of a program's processes share each sequence; empty for none.

    They are no part of the batch then: all have the same samples.
    """
    text = project.plain(program)
    if _RING.search(text) is None:
        return ""
    parts, whole = _PART.findall(text), set(_WORLD.findall(text))
    return ALL if parts and all(whole.issuperset(part) for part in parts) else SOME


def says_passes(program: File, project: Modules) -> bool:
    """Whether a program writes its flag's passes into DeepSpeed's config, and never the other way."""
    texts = [text for _, text in _texts(program, project)]
    return any(map(_SAYS_PASSES.search, texts)) and not any(map(_TAKES_PASSES.search, texts))


def says_sizes(program: File, project: Modules) -> bool:
    """Whether a program writes a batch into DeepSpeed's config, or makes one."""
    return any(_SAYS_SIZES.search(text) for _, text in _texts(program, project))


def takes_sizes(program: File, project: Modules) -> bool:
    """Whether a program has the batch of DeepSpeed's config, by a loader of the engine or by its name."""
    return any(_TAKES_SIZES.search(text) for _, text in _texts(program, project))


def takes_whole_groups(program: File, project: Modules) -> bool:
    """Whether the trainers of a program stop where what all processes take at a time is no whole groups."""
    return _all_whole(text for _, text in _texts(program, project))


def takes_whole_groups_alone(program: File, project: Modules) -> bool:
    """Whether its trainers without an engine do so, whatever those with one do."""
    return _all_whole(text for _, text in _texts(program, project) if not _SAMPLER.search(text))


def takes_whole_groups_served(program: File, project: Modules) -> bool:
    """Whether its trainers with an engine do so, whatever those without one do."""
    return _all_whole(text for _, text in _texts(program, project) if _SAMPLER.search(text))


def _all_whole(texts: Iterable[str]) -> bool:
    grouped = [text for text in texts if _GROUPS.search(text)]
    return bool(grouped) and all(map(_WHOLE.search, grouped))


def repeats_prompts(program: File, project: Modules) -> bool:
    """Whether a process takes all answers of a prompt, beside a reference, in trainers without an engine."""
    texts = [text for _, text in _texts(program, project)]
    grouped = [text for text in texts if _GROUPS.search(text) or _REPEATS.search(text)]
    alone = [text for text in grouped if not _SAMPLER.search(text)]
    repeats = all(_REPEATS.search(text) and _REFERS.search(text) for text in alone)
    return bool(alone) and repeats and not takes_whole_groups(program, project)


def _texts(program: File, project: Modules) -> Iterator[tuple[str, str]]:
    """Yield the path and the code of a program, and of the modules of its project that it leads to."""
    for file in project.files(program):
        yield file.path, project.plain(file)


ASKED = {  # of a program and its modules, each once
    "loads_passes": loads_passes,
    "sums_losses": sums_losses,
    "averages_ranks": averages_over_ranks,
    "passes_apart": passes_apart,
    "averages_tokens": averages_over_tokens,
    "means_tokens": means_tokens,
    "averages_micro": averages_micro,
    "whole_groups": takes_whole_groups,
    "whole_groups_alone": takes_whole_groups_alone,
    "whole_groups_served": takes_whole_groups_served,
    "repeats_prompts": repeats_prompts,
    "counts_micro": counts_micro,
    "says_passes": says_passes,
    "says_sizes": says_sizes,
    "takes_sizes": takes_sizes,
    "starves_adapters": starves_adapters,
    "starves_unless_quantized": starves_unless_quantized,
    "finds_unused": finds_unused,
    "applies_liger": applies_liger,
    "keeps_logits": keeps_logits,
    "trains_when_told": trains_when_told,
}
