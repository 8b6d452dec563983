#!/bin/sh
# Makes the passwords of compose.yaml in the folder `secrets` beside this file. What is there is never replaced:
# the database knows it already.
set -eu
umask 077
cd "$(dirname "$0")"
if [ -e secrets ]; then
    echo "secrets: is there already, and the database knows these passwords; nothing was changed" >&2
    exit 1
fi
half="$(mktemp -d ./secrets.XXXXXX)"
trap 'rm -rf "$half"' EXIT
for name in postgres control stores application; do
    head -c 24 /dev/urandom | od -An -v -tx1 | tr -d ' \n' > "$half/${name}_password"
done
# The form that PostgreSQL's clients read; they take no file that others may read.
printf '*:*:*:control:%s\n' "$(cat "$half/control_password")" > "$half/control_pgpass"
printf '*:*:*:control:%s\n*:*:*:stores:%s\n' "$(cat "$half/control_password")" "$(cat "$half/stores_password")" \
    > "$half/worker_pgpass"
# The database's image reads these three as a user of its own. The folder keeps everybody else out.
chmod 0444 "$half/control_password" "$half/stores_password" "$half/application_password"
if [ "$(id -u)" = 0 ]; then
    chown 10001:10001 "$half/control_pgpass" "$half/worker_pgpass"
else
    echo "give the image's user its files: sudo chown 10001:10001 secrets/control_pgpass secrets/worker_pgpass" >&2
fi
mv "$half" secrets
trap - EXIT
