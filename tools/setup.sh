# What ./run and ./test share. Sourced, in the root of the clone, with `set -euo pipefail`.

logs=build/logs
mkdir -p "$logs"

say() { printf '%s\n' "$*"; }
die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# quietly NAME COMMAND...: on a terminal the command's own progress; elsewhere its output goes to
# build/logs/NAME.log, whose end is shown if it fails.
quietly() {
  local name=$1 log="$logs/$1.log"
  shift
  if [[ -t 1 ]]; then
    "$@"
  elif ! "$@" >"$log" 2>&1 </dev/null; then
    tail -n 40 "$log" >&2
    printf '%s failed; all of it is in %s\n' "$name" "$log" >&2
    return 1
  fi
}

# Package names of a section of tools/packages.txt that are not here, nor the command instead of them.
missing_packages() {
  local section=$1 package command
  while read -r package command; do
    [[ -n "$command" ]] && command -v "$command" >/dev/null && continue
    [[ "$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null)" == "install ok installed" ]] && continue
    printf '%s\n' "$package"
  done < <(awk -v want="[$section]" '/^\[/ { on = ($1 == want); next } on && NF && !/^#/' tools/packages.txt)
}

# install_packages SECTION...: by apt, only what is missing, as root or through sudo.
install_packages() {
  command -v dpkg-query >/dev/null || return 0 # not Debian: CMake names what it misses
  local section missing=()
  for section in "$@"; do
    mapfile -t -O "${#missing[@]}" missing < <(missing_packages "$section")
  done
  ((${#missing[@]})) || return 0
  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || die "needs root to install: ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing: ${missing[*]}"
  quietly apt-update "${as_root[@]}" apt-get update -q || return 1
  quietly apt-install "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends "${missing[@]}"
}

# unpack_packages: those of the section [unpacked] into .cache/packages/NAME, so that no service of
# theirs starts. Without apt their tests say that they are skipped.
unpack_packages() {
  command -v apt-get >/dev/null || return 0
  local package folder
  while read -r package; do
    folder=${FLOTILLA_CACHE:-.cache}/packages/$package
    [[ -d $folder ]] && continue
    say "unpacking: $package"
    rm -rf "$folder.part" && mkdir -p "$folder.part"
    folder=$(realpath "$folder.part")
    quietly "unpack-$package" sh -c 'cd "$1" && apt-get download -q "$2" && dpkg -x ./*.deb . && rm ./*.deb' \
      sh "$folder" "$package" || return 1
    mv "$folder" "${folder%.part}"
  done < <(awk '/^\[/ { on = ($1 == "[unpacked]"); next } on && NF && !/^#/' tools/packages.txt)
}

# unpack_arm64 PACKAGE...: Debian's for that processor, into .cache/packages-arm64; this machine goes on
# installing its own alone.
unpack_arm64() {
  local folder=${FLOTILLA_CACHE:-.cache}/packages-arm64
  [[ -d $folder ]] && return 0
  rm -rf "$folder.part" && mkdir -p "$folder.part/lists/partial"
  local apt="-oAPT::Architecture=arm64 -oAPT::Architectures=arm64 -oDir::State::Lists=$(realpath "$folder.part/lists")"
  say "unpacking for arm64: $*"
  APT=$apt quietly unpack-arm64 sh -c 'cd "$1" && shift && apt-get $APT update -q && apt-get $APT download -q "$@" &&
    for package in ./*.deb; do dpkg -x "$package" . || exit 1; done && rm -rf ./*.deb lists' \
    sh "$(realpath "$folder.part")" "$@" || return 1
  mv "$folder.part" "$folder"
}

# build PRESET TESTS TARGET...: configures build/PRESET once (ninja configures again by itself when a
# CMake file changes) and builds. TESTS=ON makes it a build with tests; OFF leaves one that has them.
build() {
  local preset=$1 tests=$2 folder=build/$1
  shift 2
  if [[ ! -f $folder/build.ninja ]] ||
    { [[ $tests == ON ]] && ! grep -q '^FLOTILLA_TESTS:BOOL=ON' "$folder/CMakeCache.txt"; }; then
    quietly "configure-$preset" cmake --preset "$preset" -DFLOTILLA_TESTS="$tests" || return 1
  fi
  quietly "build-$preset" ninja -C "$folder" -j "$(nproc)" "$@"
}
