"""Runs launch scripts under bash and records what they start; nothing real is started.

These are strangers' scripts, so they run where they can do no harm. Each gets a root of its own (new mount,
PID, network and IPC namespaces, `pivot_root` onto a tmpfs): the C library and some harmless tools of the
system, read-only; the checkout as the lower layer of an overlay, so that what a script writes or deletes is
gone when it ends; nothing else of the machine, no network, no device but /dev/null and /dev/zero. It runs as
nobody where root starts it, else as a user of a namespace, without capabilities, with limits on time,
processes, memory and the size of files, and is killed with everything that it started when the time is up.

Every program on its PATH is a stub that records its arguments (python, torchrun, accelerate, sbatch and
whatever else is asked for); launchers of other programs (srun, docker run, ssh, sbatch) start what they
are given, which ends in stubs again. Folders that a script enters and files of environments that it sources
are there and empty. A script that cannot do without arguments (``MODEL=$1``) gets as many numbers, and one
with ``#SBATCH`` lines what Slurm sets in such a job: without them, its flags would take each other for their
values. Each script runs in two worlds that differ in the checkout's place, the home folder, the date, the
arguments, the job's number, the number of GPUs and what programs print: where the two differ, the script does
not say the value.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


TOOLS = _words(
    "[ awk basename cat chmod comm cp cut dirname echo env expr false find fold gawk grep egrep fgrep"
    " head join ln ls mawk mkdir mktemp mv nice nl nohup nproc paste printenv printf pwd readlink"
    " realpath rev rm rmdir sed seq setsid shuf sort split stat stdbuf sync tac tail tee test timeout"
    " touch tr true tsort uname uniq wc xargs yes"
)
# They start the program that they are given, or run the text that they are given.
STARTERS = _words(
    "srun mpirun mpiexec mpiexec.hydra orterun horovodrun sudo numactl taskset uv uvx poetry pdm pixi"
    " pipenv conda mamba micromamba docker podman nerdctl apptainer singularity enroot nsys ncu ray time"
    " unbuffer xvfb-run tini kubectl coverage torchx ionice chrt flock su gosu jsrun aprun flux"
)
TEXTS = _words("ssh pdsh tmux screen pssh clush parallel-ssh")
STUBS = _words(
    "python python2 python3 python3.8 python3.9 python3.10 python3.11 python3.12 python3.13 torchrun"
    " accelerate deepspeed colossalai composer trl axolotl llamafactory-cli lmf swift megatron tune"
    " vllm sglang xtuner litgpt rl ipython jupyter pip pip3 git wget curl apt apt-get yum hf"
    " huggingface-cli wandb"
    " nvidia-smi rocm-smi nvcc scontrol sinfo squeue sacct scancel module sleep kill pkill killall ps"
    " lsof netstat ss ifconfig ip ping hostname whoami id date df du free top tar unzip gzip aws gcloud"
    " gsutil rsync scp make cmake gcc g++ node npm bc jq perl ruby crontab systemctl service mount"
    " umount chown sbatch qsub bsub"
)
SECONDS = 5
# `MODEL=$1` and its like at the left margin: outside of functions, branches and loops.
_NEEDS = re.compile(r"(?m)^(?:export +|readonly +)?(\w+)=[\"']?[\w./-]*\$(?:(\d)|\{(\d+)(?::?\?[^}\n]*)?\})")
_OPTIONAL = re.compile(r"\$\{(\d+):?-")
_SBATCH = re.compile(r"(?m)^#SBATCH[ \t]+(--[\w-]+|-\w)[= \t]?[ \t]*([^\s#]+)")
# What `#SBATCH` says, and how Slurm calls it in the job (man sbatch, OUTPUT ENVIRONMENT VARIABLES).
_SLURM = {
    ("--nodes", "-N"): ("SLURM_NNODES", "SLURM_JOB_NUM_NODES"),
    ("--ntasks", "-n"): ("SLURM_NTASKS", "SLURM_NPROCS"),
    ("--ntasks-per-node",): ("SLURM_NTASKS_PER_NODE",),
    ("--cpus-per-task", "-c"): ("SLURM_CPUS_PER_TASK",),
    ("--gpus-per-node",): ("SLURM_GPUS_PER_NODE",),
    ("--gpus", "-G"): ("SLURM_GPUS",),
    ("--job-name", "-J"): ("SLURM_JOB_NAME",),
}
_PROGRAM = re.compile(
    r"(?<![\w.$}/-])(/[\w./+-]*/(?:python[\d.]*|torchrun|accelerate|deepspeed|uv|trl|conda))\b"
)
_SOURCED = re.compile(r"(?m)(?:^|[;&|]\s*|\bthen\s+|\bdo\s+)\s*(?:source|\.)\s+[\"']?([\w./~+${}-]+)")
_ENVIRONMENT = re.compile(r"activate|bashrc|profile|conda\.sh|env\.sh|\.env\Z|modules|setvars|lmod")

_STUB = r"""#!/.tools/bash -p
name=${0##*/}
note() {
  { printf '%s\0' "$name" "$PWD" "$CFG_AT" "${CUDA_VISIBLE_DEVICES-}" "${NPROC_PER_NODE-}" "${NNODES-}" \
    "$@"; printf '\1'; } >"/rec/$EPOCHREALTIME-$BASHPID"
}
world=$(</world)
inner() {
  local word
  while (($#)); do
    word=${1##*/}
    case $word in
      python|python[23]|python3.*|torchrun|accelerate|deepspeed|bash|sh|zsh|env|nohup|xargs|timeout|\
      STARTERS|FRAMEWORKS)
        [[ $1 != /* && $1 == */* && ! -e $1 ]] || {
          [[ $1 == /* && ! -e $1 ]] && set -- "$word" "${@:2}"; exec "$@"; } ;;
      *.sh) [[ -f $1 ]] && exec bash "$@" ;;
    esac
    shift
  done
}
case $name in
  TEXTS)
    for text; do [[ $text == *' '* ]] && bash -c "$text"; done; note "$@" ;;
  STARTERS)
    [[ $name != srun || ! -v SLURM_JOB_ID ]] ||
      export SLURM_PROCID=$((world - 1)) SLURM_NODEID=$((world - 1)) SLURM_LOCALID=0
    (($#)) && case $1 in pip|install|add|sync|create|pull|build|activate|init) note "$@"; exit 0 ;; esac
    words=("$@"); inner "$@"; note "${words[@]}" ;;
  sbatch|qsub|bsub)
    words=("$@")
    while (($#)); do
      case $1 in
        --wrap=*) bash -c "${1#--wrap=}"; exit ;;
        --wrap) bash -c "$2"; exit ;;
        -[a-zA-Z]) shift 2 ;;
        --*=*|-*) shift ;;
        *) [[ -f $1 ]] && exec bash "$@"; shift ;;
      esac
    done
    note "${words[@]}"; bash -s ;;
  sleep) note "$@" ;;
  date)
    if ((world == 2)); then exec /.tools/date -d '2031-02-03 04:05:06' "$@"; fi
    exec /.tools/date "$@" ;;
  nvidia-smi|rocm-smi)
    note "$@"; for ((i = 0; i < 2 * world; i++)); do echo "GPU $i: stub ($world$i)"; done ;;
  kill|pkill|killall|ps|module|wandb|git|pip|pip3|mount|umount) note "$@" ;;
  *) note "$@"; if [[ ! -t 1 && -p /dev/stdout ]]; then echo "$((41 + world))"; fi ;;
esac
exit 0
"""
_RC = r"""
export CFG_OUTER=${CFG_AT-} CFG_AT
set -o functrace
trap 'CFG_AT="$CFG_OUTER|${BASH_SOURCE[0]-}:$LINENO:${BASH_LINENO[*]-}"' DEBUG
command_not_found_handle() { /stubs/unknown "$@"; }
cd() { builtin cd "$@" 2>/dev/null || { mkdir -p -- "${!#}" 2>/dev/null; builtin cd "$@"; }; }
pushd() { builtin pushd "$@" >/dev/null 2>&1 || { mkdir -p -- "${!#}" 2>/dev/null; builtin pushd "$@"; }; }
export -f cd pushd
"""
_SETUP = r"""set -e
mount -t tmpfs -o size=512m,mode=755 none "$1"; cd "$1"
mkdir -m 755 top upper wup work
mount -t overlay none -o "lowerdir=$2,upperdir=$PWD/upper,workdir=$PWD/work" top
mkdir work2
cd top
for lib in usr/lib usr/lib64 lib lib64; do
  [ -d "/$lib" ] || continue
  if [ -L "/$lib" ]; then ln -sfn "$(readlink "/$lib")" "$lib"; continue; fi
  mkdir -p "$lib"; mount --bind -o ro "/$lib" "$lib"
done
mkdir -p .tools dev proc rec tmp old usr/bin "${4#/}"
mount --bind -o ro /usr/bin .tools
touch dev/null dev/zero; mount --bind /dev/null dev/null; mount --bind /dev/zero dev/zero
mount -t proc none proc; ln -sfn /proc/self/fd dev/fd; ln -sfn /proc/self/fd/1 dev/stdout
ln -sfn /proc/self/fd/2 dev/stderr; ln -sfn /proc/self/fd/0 dev/stdin
mount -t overlay none -o "lowerdir=$3,upperdir=$1/wup,workdir=$1/work2" "${4#/}"
find "${4#/}" -type d -exec chmod a+rwx {} +
mkdir -p ".$5"; chmod 1777 tmp rec ".$5" "${4#/}"; chmod 777 .
echo "$6" >world
while IFS= read -r file; do
  case $file in /*) at=.$file ;; *) at=.$4/$7/$file ;; esac
  [ ! -e "$at" ] || continue
  { mkdir -p "${at%/*}"
    case $file in *.PROGRAM) cp stubs/python "${at%.PROGRAM}" ;; *) : >"$at" ;; esac; } 2>/dev/null || true
done
pivot_root . old; /.tools/umount -l old; cd "$4/$7"
ulimit -c 0 -f 20480 -t 4 -v 2097152 -n 256 -u 400
printf 'ready\1'
as_user="--reuid=65534 --regid=65534 --clear-groups"; [ "$9" = root ] || as_user=
/.tools/timeout -k 1 "$SECONDS_MOST" \
  /.tools/setpriv $as_user --bounding-set=-all --inh-caps=-all --no-new-privs \
  /.tools/env -i HOME="$5" PATH=/stubs:/usr/bin:/bin BASH_ENV=/rc TERM=dumb "${@:10}" \
  </dev/null >/dev/null 2>&1 || true
cd /rec; for file in *; do [ -f "$file" ] && /.tools/cat "$file"; done
"""


class Start(NamedTuple):
    """A program that a script started: ``at`` are the places of the call, the script's own first."""

    argv: tuple[str, ...]
    cwd: str
    at: str
    devices: str
    per_node: str
    nodes: str


class Sandbox:
    """Roots to run scripts in; `close` removes what they are made of."""

    def __init__(self) -> None:
        self._folder = Path(mkdtemp(prefix="launches-"))
        self._folder.chmod(0o755)
        base = self._folder / "base"
        for name in ("stubs", "usr/bin", "root"):
            (base / name).mkdir(parents=True)
        frameworks = "trl|axolotl|llamafactory-cli|swift|tune|vllm|sglang|xtuner|litgpt"
        stub = _STUB.replace("|FRAMEWORKS)", f"|{frameworks})")
        stub = stub.replace("STARTERS", "|".join(STARTERS)).replace("TEXTS)", "|".join(TEXTS) + ")")
        for name in {*STUBS, *STARTERS, *TEXTS, "unknown"}:
            path = base / "stubs" / name
            path.write_text(stub)
            path.chmod(0o755)
            (base / "usr/bin" / name).symlink_to(f"/stubs/{name}")
        for name in TOOLS:
            (base / "stubs" / name).symlink_to(f"/.tools/{name}")
            (base / "usr/bin" / name).symlink_to(f"/.tools/{name}")
        for name in ("bash", "sh", "zsh", "dash"):
            (base / "stubs" / name).symlink_to("/.tools/bash")
            (base / "usr/bin" / name).symlink_to("/.tools/bash")
        (base / "bin").symlink_to("usr/bin")
        (base / "rc").write_text(_RC)
        self._base = base
        self._root = self._folder / "root"
        self._root.mkdir()

    def close(self) -> None:
        """Remove what was made on this machine."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def run(self, checkout: Path, script: str, cwd: str, world: int) -> list[Start]:
        """Return what a script of a checkout starts when it is run from the folder ``cwd`` of it."""
        place = (f"/mnt/one/{checkout.name}", f"/srv/two/{checkout.name}")[world - 1]
        home = ("/home/first", "/users/second")[world - 1]
        text = (checkout / script).read_text("utf-8", "replace")
        wanted = [f"{found}.PROGRAM" for found in set(_PROGRAM.findall(text))]
        for name in set(_SOURCED.findall(text)):
            plain = re.sub(r"\A(~|\$\{?HOME\}?)/", home + "/", name)
            if "$" not in plain and _ENVIRONMENT.search(plain) and not (checkout / cwd / plain).exists():
                wanted.append(plain)
        root = os.geteuid() == 0
        namespaces = ["unshare", *([] if root else ["-r", "-U"]), "-mnpif", "--kill-child"]
        own = os.path.relpath(script, cwd or ".")
        told = (
            self._root,
            self._base,
            checkout.resolve(),
            place,
            home,
            world,
            cwd,
            own,
            "root" if root else "user",
        )
        command = [*slurm(text, world), "/.tools/bash", own, *arguments(text, world)]
        done = subprocess.run(
            [*namespaces, "bash", "-c", _SETUP, "setup", *map(str, told), *command],
            input="".join(name + "\n" for name in wanted).encode(),
            capture_output=True,
            env={"PATH": os.environ["PATH"], "SECONDS_MOST": str(SECONDS)},
            timeout=SECONDS + 30,
            check=False,
        )
        if not done.stdout:
            raise RuntimeError(f"the sandbox could not be made: {done.stderr.decode()[-300:]}")
        return [_start(record) for record in done.stdout.split(b"\1") if record.count(b"\0") > 5]


def arguments(text: str, world: int) -> list[str]:
    """Return what a script is given that cannot do without arguments: a number for each.

    It can do without one for which it has a default, ``${1:-X}`` or ``[ -z "$NAME" ]`` afterwards, and
    without those behind that.
    """
    needed, optional = 0, min((int(place) for place in _OPTIONAL.findall(text)), default=99)
    for name, digit, number in _NEEDS.findall(text):
        place = digit or number
        asked = rf"-z +\"?\$\{{?{name}\b|\$\{{?{name}\}}?\"? *==? *(?:\"\"|'')|\$\{{{name}:?[-=]"
        if re.search(asked, text):
            optional = min(optional, int(place))
        needed = max(needed, int(place))
    return [str(2 * world)] * min(needed, optional - 1)


def slurm(text: str, world: int) -> list[str]:
    """Return the variables that Slurm sets for a batch script, ``NAME=value``."""
    asked = dict(_SBATCH.findall(text))
    if "#SBATCH" not in text:
        return []
    job = f"{world}{world}00"
    found = {"SLURM_JOB_ID": job, "SLURM_JOBID": job, "SLURM_SUBMIT_DIR": f"/submit/{world}"}
    found |= dict.fromkeys(("SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURMD_NODENAME"), f"node{world}")
    found |= dict.fromkeys(("SLURM_PROCID", "SLURM_NODEID", "SLURM_LOCALID"), "0")
    for options, names in _SLURM.items():
        for value in (asked[option] for option in options if option in asked):
            found |= dict.fromkeys(names, value)
    if "SLURM_NNODES" not in found and "SLURM_NTASKS" not in found:
        found |= dict.fromkeys(("SLURM_NNODES", "SLURM_JOB_NUM_NODES"), "1")
    gpus = re.search(r"gpu:(?:[\w.-]+:)?(\d+)", asked.get("--gres", ""))
    if gpus:
        found["SLURM_GPUS_ON_NODE"] = gpus[1]
    return [f"{name}={value}" for name, value in found.items()]


def _start(record: bytes) -> Start:
    name, cwd, at, devices, per_node, nodes, *argv = record.decode("utf-8", "replace").split("\0")[:-1]
    argv = argv if name == "unknown" else [name, *argv]
    return Start(tuple(argv), cwd, at, devices, per_node, nodes)
