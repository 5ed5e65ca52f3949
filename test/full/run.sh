#!/usr/bin/env bash
# The tests that need more than Node.js: installs what they need where it can, then runs them. Each is skipped visibly, with
# the reason, where it cannot.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

missing=()
command -v promtool >/dev/null || missing+=(prometheus)
command -v prometheus-alertmanager >/dev/null || missing+=(prometheus-alertmanager)
command -v victoria-metrics >/dev/null || missing+=(victoria-metrics)
command -v systemd-analyze >/dev/null || missing+=(systemd)
command -v tmux >/dev/null || missing+=(tmux)
command -v chromium >/dev/null || missing+=(chromium)
ls /usr/lib/*/faketime/libfaketimeMT.so.1 >/dev/null 2>&1 || missing+=(libfaketime)
if [ "${#missing[@]}" -gt 0 ]; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq || true
    for package in "${missing[@]}"; do
      DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$package" >/dev/null ||
        echo "test:full: $package could not be installed: its tests will be skipped"
    done
  else
    echo "test:full: ${missing[*]} not installed and cannot be installed from here (needs root and apt-get): their tests will be skipped"
  fi
fi
npx vitest run --project full
