#!/usr/bin/env bash
# Two machines with four GPUs each: sbatch benchmarks/slurm.sh [ARGUMENTS OF parlab bench]
#
# Every node runs the same command with its own --node-rank; node 0 writes the records. The results
# folder must be one that all nodes see. The meshes must multiply to all GPUs: here 8 ranks, so
# they are given. The one-rank baseline runs on node 0 alone.
#SBATCH --job-name=parlab-bench
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=16
#SBATCH --time=01:00:00
#SBATCH --output=parlab-bench-%j.log
set -euo pipefail
cd "${SLURM_SUBMIT_DIR:?run this with sbatch, from the course folder}"

if [ $# -eq 0 ]; then
  set -- --workload qwen3-0.6b --device cuda --groups baseline \
    --mesh pp=2,tp=4 --mesh pp=4,tp=2 --mesh pp=2,cp=2,tp=2
fi
hosts=$(scontrol show hostnames "$SLURM_JOB_NODELIST")
export ENDPOINT="${hosts%%$'\n'*}:$((20000 + SLURM_JOB_ID % 20000))"

# shellcheck disable=SC2016  # each node expands its own SLURM_NODEID
exec srun --kill-on-bad-exit=1 bash -c '
  exec .venv/bin/parlab bench "$@" --nnodes "$SLURM_NNODES" --node-rank "$SLURM_NODEID" \
    --rdzv-endpoint "$ENDPOINT" --run-id "$SLURM_JOB_ID"
' bench "$@"
