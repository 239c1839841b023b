#!/usr/bin/env bash
# krew.sh OWNER VERSION: prints the manifest of krew with the checksums of the archives in dist.
set -euo pipefail
owner=$1 version=$2
cd "$(dirname "$0")/.."
sed_args=(-e '/^#/d' -e "s/OWNER/$owner/g" -e "s/VERSION/$version/g")
for platform in linux_amd64 linux_arm64; do
  sum=$(cut -d' ' -f1 "${DIST:-dist}/outrider_${version}_${platform}.tar.gz.sha256")
  sed_args+=(-e "s/SHA256_$platform/$sum/")
done
sed "${sed_args[@]}" packaging/krew.yaml
