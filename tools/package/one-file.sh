#!/bin/sh
# gpuwarden @VERSION@ in one file: unpacks itself once, beside itself or in a cache, and starts from there.
# GPUWARDEN_UNPACK_DIR names the folder; it must allow programs to run.
set -eu
name="gpuwarden-@VERSION@-@DIGEST@"
here="$0"
case "$here" in */*) ;; *) here="$(command -v -- "$0")" ;; esac
here="$(readlink -f -- "$here")"
is_whole() { [ -f "$1/$name/WHOLE" ] && [ -x "$1/$name/node" ]; }
is_ours() { [ -O "$1/$name" ] || [ "$(stat -c %u -- "$1/$name" 2>/dev/null)" = 0 ]; }
start() {
  GPUWARDEN_LAUNCHER="$here"
  export GPUWARDEN_LAUNCHER
  folder="$1/$name"
  shift
  exec "$folder/node" "$folder/bin/gpuwarden.js" "$@"
}
# One line for each folder that may do, the best first. What others may write to is used only where we made it ourselves.
candidates() {
  if [ -n "${GPUWARDEN_UNPACK_DIR:-}" ]; then
    printf '%s\n' "$GPUWARDEN_UNPACK_DIR"
    return
  fi
  if [ "$(id -u)" = 0 ]; then printf '%s\n' /var/lib/gpuwarden-program; fi
  if [ -n "${XDG_CACHE_HOME:-${HOME:-}}" ]; then printf '%s\n' "${XDG_CACHE_HOME:-${HOME:-}/.cache}/gpuwarden"; fi
  printf '%s\n' "$(dirname -- "$here")/.gpuwarden" "${TMPDIR:-/tmp}/gpuwarden-$(id -u)" "/dev/shm/gpuwarden-$(id -u)"
}
# In a folder of its own that is renamed when it is whole: two that start at the same moment do not meet.
unpack() {
  mkdir -p -- "$1" 2>/dev/null && chmod go-w -- "$1" 2>/dev/null || return 1
  [ -O "$1" ] || [ "$(id -u)" = 0 ] || return 1
  part="$(mktemp -d "$1/.unpacking-XXXXXX" 2>/dev/null)" || return 1
  printf '#!/bin/sh\nexit 0\n' > "$part/try" && chmod 700 "$part/try" && "$part/try" 2>/dev/null || { rm -rf -- "$part"; reason="$1 does not allow programs to run"; return 1; }
  rm -f -- "$part/try"
  if ! tail -n "+@LINES@" -- "$here" | gzip -dc 2>/dev/null | tar -x -C "$part" --no-same-owner 2>/dev/null; then
    rm -rf -- "$part"
    reason="$1 has too little room (200 MB are needed), or the file is not whole"
    return 1
  fi
  chmod -R go-w,a+rX -- "$part"
  : > "$part/WHOLE"
  if ! mv -T -- "$part" "$1/$name" 2>/dev/null; then rm -rf -- "$part"; is_whole "$1" || return 1; fi
  for old in "$1"/gpuwarden-*; do
    # Versions that nobody has started for 30 days.
    if [ "$old" != "$1/$name" ] && [ -n "$(find "$old/WHOLE" -mtime +30 2>/dev/null)" ]; then rm -rf -- "$old"; fi
  done
}
if [ "$(uname -m)" != x86_64 ]; then
  echo "gpuwarden: this file is for x86_64 machines; this one is $(uname -m). Use the Python wheel or the npm package." >&2
  exit 2
fi
reason=""
IFS='
'
for folder in $(candidates); do
  if is_whole "$folder" && is_ours "$folder"; then touch -c -- "$folder/$name/WHOLE" 2>/dev/null || :; start "$folder" "$@"; fi
done
for folder in $(candidates); do
  if unpack "$folder"; then start "$folder" "$@"; fi
done
echo "gpuwarden: found no folder to unpack itself into${reason:+: $reason}. Set GPUWARDEN_UNPACK_DIR to one that you may write to and that is not mounted noexec." >&2
exit 2
@END@
