#!/bin/sh
# Enters the images of Dockerfile and compose.yaml with their digests into deploy/.env, where compose reads them: sh
# pin-images.sh [FILE]. Other lines of the file stay. Keep the file: what runs today runs tomorrow. A further run takes what
# the tags mean by then.
set -eu
file=${1:-$(dirname "$0")/.env}
fresh=$(mktemp)
trap 'rm -f "$fresh"' EXIT
if [ -e "$file" ]; then
    grep -vE '^(PYTHON|POSTGRES_IMAGE|REDIS_IMAGE|NGINX_IMAGE)=' "$file" >"$fresh" || true
fi
while read -r name image; do
    digest=$(docker buildx imagetools inspect "$image" --format '{{.Manifest.Digest}}')
    if ! printf %s "$digest" | grep -Eqx 'sha256:[0-9a-f]{64}'; then
        echo "$image: no digest; nothing was written" >&2
        exit 1
    fi
    echo "$name=$image@$digest" >>"$fresh"
done <<END
PYTHON python:3.11.13-slim-bookworm
POSTGRES_IMAGE postgres:16.9-bookworm
REDIS_IMAGE redis:7.4.5-bookworm
NGINX_IMAGE nginx:1.28.0-bookworm
END
cat "$fresh" >"$file"
