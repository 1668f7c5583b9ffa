#!/bin/sh
# Fresh secrets of a new installation, each in a file of the folder named: sh make-secrets.sh FOLDER [POSTGRES_HOST]
# It never overwrites: a vault key that is lost opens nothing any more.
set -eu
folder=${1:?name the folder}
host=${2:-postgres}
umask 077
mkdir -p "$folder"
for name in postgres_password database_url vault_key vault_pepper; do
    if [ -e "$folder/$name" ]; then
        echo "$folder/$name is there already; nothing was written" >&2
        exit 1
    fi
done
password=$(openssl rand -hex 24)
printf %s "$password" >"$folder/postgres_password"
printf %s "postgresql://cambist:$password@$host:5432/cambist" >"$folder/database_url"
printf %s "1:$(openssl rand -hex 32)" >"$folder/vault_key"
printf %s "$(openssl rand -hex 32)" >"$folder/vault_pepper"
# The container's user reads them; only root can give them to it.
if [ "$(id -u)" = 0 ]; then
    chown 10001 "$folder/database_url" "$folder/vault_key" "$folder/vault_pepper"
else
    echo "give database_url, vault_key and vault_pepper to user 10001: sudo chown 10001 $folder/…" >&2
fi
