# Sourced by a check.sh as `. ../environment.sh NAME PACKAGE…`: makes build/integrations/NAME, an environment with these
# packages beside the project's own, and names its interpreter $PY; $ROOT is the checkout.
set -euo pipefail
ROOT=$(cd ../.. && pwd)
NAME=$1; shift
PY=$ROOT/build/integrations/$NAME/bin/python
if [ "$(cat "$ROOT/build/integrations/$NAME/packages" 2>/dev/null)" != "$*" ]; then
	python -m venv "$ROOT/build/integrations/$NAME"
	"$PY" -m pip --disable-pip-version-check install --quiet -c "$ROOT/constraints.txt" "$@" || { echo "its packages cannot be installed: $*"; exit 77; }
	beside=$(python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
	"$PY" -c 'import sys, sysconfig, pathlib; pathlib.Path(sysconfig.get_path("purelib"), "project.pth").write_text(
		f"import site; site.addsitedir({sys.argv[1]!r})\n")' "$beside"
	echo "$*" >"$ROOT/build/integrations/$NAME/packages"
fi
export PYTHONPATH=$ROOT
