#!/usr/bin/env bash
# archive.sh BINARY VERSION PLATFORM: writes outrider_VERSION_PLATFORM.tar.gz into DIST (dist), with the binary under both names, and its
# checksum beside it. The same binary gives the same bytes.
set -euo pipefail
binary=$1 version=$2 platform=$3
cd "$(dirname "$0")/.."
dist=${DIST:-dist}
mkdir -p "$dist"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
install -m 755 "$binary" "$folder/outrider"
ln "$folder/outrider" "$folder/kubectl-outrider"
install -m 644 LICENSE "$folder/LICENSE"
archive=outrider_${version}_${platform}.tar.gz
tar --sort=name --mtime=@0 --owner=0 --group=0 --numeric-owner -C "$folder" -cf - LICENSE kubectl-outrider outrider | gzip -n > "$dist/$archive"
(cd "$dist" && sha256sum "$archive" > "$archive.sha256")
echo "$dist/$archive"
