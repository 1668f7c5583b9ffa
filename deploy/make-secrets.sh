#!/bin/sh
# Fresh secrets of a new installation, each in a file of the folder named:
# sh make-secrets.sh FOLDER [POSTGRES_HOST] [REDIS_HOST]
# It never overwrites: a vault key that is lost opens nothing any more.
set -eu
folder=${1:?name the folder}
host=${2:-postgres}
redis_host=${3:-redis}
umask 077
mkdir -p "$folder"
for name in postgres_password database_url redis_conf redis_url vault_key vault_pepper; do
    if [ -e "$folder/$name" ]; then
        echo "$folder/$name is there already; nothing was written" >&2
        exit 1
    fi
done
password=$(openssl rand -hex 24)
printf %s "$password" >"$folder/postgres_password"
printf %s "postgresql://cambist:$password@$host:5432/cambist" >"$folder/database_url"
# Redis reads its password from its configuration: it stands in no table of processes.
password=$(openssl rand -hex 24)
printf 'requirepass %s\n' "$password" >"$folder/redis_conf"
printf %s "redis://:$password@$redis_host:6379/0" >"$folder/redis_url"
printf %s "1:$(openssl rand -hex 32)" >"$folder/vault_key"
printf %s "$(openssl rand -hex 32)" >"$folder/vault_pepper"
# The container's user reads them; only root can give them to it.
if [ "$(id -u)" = 0 ]; then
    chown 10001 "$folder/database_url" "$folder/redis_url" "$folder/vault_key" "$folder/vault_pepper"
    chown 999 "$folder/redis_conf"
else
    echo "give database_url, redis_url, vault_key and vault_pepper to user 10001: sudo chown 10001 $folder/…" >&2
    echo "give redis_conf to the user of Redis: sudo chown 999 $folder/redis_conf" >&2
fi
