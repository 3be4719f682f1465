#!/usr/bin/env bash
# Every check that requires a GPU: build, the suite, the memory checkers, the benchmarks. Build
# requirements and test packages must be installed; no network is needed.
# usage: tools/verify_gpu.sh [FOLDER for logs [FOLDER of kernels made by tools/build_kernels.py]]
set -uo pipefail
cd "$(dirname "$0")/.."
out=${1:-build/verify}
mkdir -p "$out"
failed=0

step() {
    local name=$1
    shift
    local begin=$SECONDS
    "$@" >"$out/$name.log" 2>&1
    local status=$?
    echo "== $name: exit $status, $((SECONDS - begin)) s"
    tail -n "${LINES_SHOWN:-12}" "$out/$name.log"
    [ $status -eq 0 ] || failed=1
}

export CYRT_DEVICE=cuda PYTHONUNBUFFERED=1
prebuilt=build
[ -z "${2:-}" ] || prebuilt=$(realpath "$2")
step build python3 -m pip install --no-build-isolation --no-deps --force-reinstall \
    "-Csetup-args=-Dprebuilt=$prebuilt" .
root=$PWD
cd "$(mktemp -d)" || exit 1     # the installed package, not the source folder
out=$(realpath "$root/$out" 2>/dev/null || realpath "$out")
step info python3 -m cyrt info
pytest=(python3 -m pytest -p no:cacheprovider -q)
python3 -c "import xdist" 2>/dev/null && pytest+=(-n 8)
step suite "${pytest[@]}" "$root/tests"
step memory python3 -m pytest -p no:cacheprovider -q "$root/tests/graph/test_flat_memory.py"
CYRT_GRAPHS=0 step suite_without_graphs "${pytest[@]}" "$root/tests"
LINES_SHOWN=70 step bench python3 -m cyrt bench --json "$out/bench.json" \
    --plot "$out/bench.svg"
for script in "$root"/tools/benchmarks/*.py; do
    name=$(basename "$script" .py)
    [ "$name" = common ] || LINES_SHOWN=70 step "benchmark_$name" python3 "$script" \
        --json "$out/$name.json"
done
for tool in memcheck racecheck initcheck; do
    quiet=()
    # The driver reports the number of a kernel's parameters by an error for the index after the
    # last.
    [ $tool = memcheck ] && quiet=(--report-api-errors no)
    CYRT_POOL=0 step "$tool" compute-sanitizer --tool "$tool" --error-exitcode 9 "${quiet[@]}" \
        python3 -m pytest -p no:cacheprovider -q "$root/tests/kernels" "$root/tests/graph" \
        -k "saxpy or templates or structs or shared or three_dimensions or edges or random_program"
done
exit $failed
