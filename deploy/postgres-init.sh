#!/bin/sh
# Run once, by the database's image, on an empty data folder: two users, the databases that each of them owns, and one
# user for applications that owns nothing. Nobody but its owner enters a database, so who knows the password of `control`
# cannot open what people said; applications may when a worker has run `expunge memory grant application`.
set -eu
psql --no-psqlrc --set=ON_ERROR_STOP=1 --username="$POSTGRES_USER" --dbname=postgres --quiet <<'SQL'
\set control_password `cat "$CONTROL_PASSWORD_FILE"`
\set stores_password `cat "$STORES_PASSWORD_FILE"`
\set application_password `cat "$APPLICATION_PASSWORD_FILE"`
CREATE ROLE control LOGIN PASSWORD :'control_password';
CREATE ROLE stores LOGIN PASSWORD :'stores_password';
CREATE ROLE application LOGIN PASSWORD :'application_password';
-- To name, by process ids, who keeps deleted rows from being removed.
GRANT pg_read_all_stats TO stores;
CREATE DATABASE control OWNER control;
CREATE DATABASE source OWNER stores;
CREATE DATABASE vectors OWNER stores;
REVOKE CONNECT ON DATABASE control, source, vectors FROM PUBLIC;
\connect vectors
-- Only a superuser may add it.
CREATE EXTENSION vector;
SQL
