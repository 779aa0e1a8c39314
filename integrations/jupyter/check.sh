#!/bin/bash
# The widgets in a real JupyterLab, driven by a headless Chromium; SHOT=FILE keeps a picture.
. ../environment.sh jupyter anywidget==0.11.0 jupyterlab==4.6.6 playwright==1.65.2
for browser in chromium chromium-browser google-chrome; do
	if command -v "$browser" >/dev/null; then exec "$PY" check_lab.py "$(command -v "$browser")"; fi
done
echo "there is no Chromium: apt-get install chromium"
exit 77
