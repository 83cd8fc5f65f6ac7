# What ./start and ./test share: look for a program, install it where we can, else say what is missing.
# shellcheck shell=bash

say() { printf '%s\n' "==> $*" >&2; }
fail() { printf '%s\n' "error: $*" >&2; exit 1; }

# Installs Debian packages; on other systems says which programs are needed.
install_packages() {
  if ! command -v apt-get >/dev/null 2>&1; then
    fail "please install: $* (this is not a Debian or Ubuntu system, where this script does it)"
  fi
  local as=()
  if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null 2>&1 || fail "please run as root: apt-get install $*"
    as=(sudo)
  fi
  say "Installing $*"
  # A list of packages that is too old names files that are gone: refresh it once and try again.
  DEBIAN_FRONTEND=noninteractive "${as[@]}" apt-get install -y -q --no-install-recommends "$@" >/dev/null 2>&1 && return
  "${as[@]}" apt-get update -q >/dev/null || fail "apt-get update failed: is there a network?"
  DEBIAN_FRONTEND=noninteractive "${as[@]}" apt-get install -y -q --no-install-recommends "$@" >/dev/null ||
    fail "could not install: $*"
}

# Twice what the tests leave, in the file system that is memory, in memory itself and in what this container
# may have of it; and programs can be run from there.
has_memory_to_spare() {
  local needed_kib=$((13 * 1024 * 1024)) room free limit
  [ -w /dev/shm ] && [ -r /proc/meminfo ] || return 1
  ! findmnt -n -o OPTIONS -T /dev/shm 2>/dev/null | grep -qw noexec || return 1
  room=$(df --output=avail -k /dev/shm | tail -n 1)
  free=$(sed -n 's/^MemAvailable: *\([0-9]*\) kB$/\1/p' /proc/meminfo)
  limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || echo max)
  [ "$limit" = max ] || [ "$((limit / 1024))" -gt "$needed_kib" ] || return 1
  [ "${room:-0}" -gt "$needed_kib" ] && [ "${free:-0}" -gt "$needed_kib" ]
}

need_program() {
  local program=$1 package=$2
  command -v "$program" >/dev/null 2>&1 || install_packages "$package"
}

need_c_compiler() {
  command -v cc >/dev/null 2>&1 || install_packages build-essential
}

need_rust() {
  local wanted have
  wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
  if ! command -v cargo >/dev/null 2>&1; then
    if [ -x "$HOME/.cargo/bin/cargo" ]; then
      PATH="$HOME/.cargo/bin:$PATH"
    else
      install_packages rustup
      rustup default stable >&2 || fail "rustup could not fetch Rust; install Rust $wanted or newer"
    fi
  fi
  have=$(rustc --version | cut -d ' ' -f 2)
  if [ "$(printf '%s\n%s\n' "$wanted" "$have" | sort -V | head -n 1)" != "$wanted" ]; then
    fail "Rust $have is too old: $wanted or newer is needed (rustup update stable)"
  fi
}

need_rust_component() {
  cargo "${1/rustfmt/fmt}" --version >/dev/null 2>&1 && return
  rustup component add "$1" >&2 || fail "the Rust component $1 is missing: rustup component add $1"
}

# The packages of a folder's lock file, fetched when the lock file is newer than what is there.
need_npm_packages() {
  local there="$1/node_modules/.package-lock.json"
  [ -e "$there" ] && [ ! "$1/package-lock.json" -nt "$there" ] && return
  say "Fetching the packages of $1"
  npm --prefix "$1" ci --no-audit --no-fund --silent >&2 || fail "npm could not fetch the packages of $1"
}

# Of Python's own packages, in a folder of its own.
need_schemathesis() {
  local home=target/schemathesis
  [ -x "$home/bin/schemathesis" ] && return
  python3 -c 'import ensurepip, venv' 2>/dev/null || install_packages python3-venv
  say "Fetching schemathesis"
  python3 -m venv "$home" && "$home/bin/pip" install --quiet --disable-pip-version-check "schemathesis==4.32.5" >&2 ||
    fail "pip could not fetch schemathesis"
}

# Chromium without its windows takes half the time for the same pages; the whole one does as well.
need_browser() {
  command -v chromium-headless-shell >/dev/null 2>&1 && return
  (install_packages chromium-headless-shell) 2>/dev/null || need_program chromium chromium
}

need_php() {
  php -r 'exit(extension_loaded("pdo_sqlite") ? 0 : 1);' >/dev/null 2>&1 || install_packages php-cli php-sqlite3
}

need_postgres() {
  ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 && return
  command -v initdb >/dev/null 2>&1 && return
  install_packages postgresql
}
