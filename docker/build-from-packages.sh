#!/bin/sh
# Builds the reference's image out of Debian 13's packages on an empty base, with no image registry in reach:
# apt checks the signatures, nothing is installed, `docker import` takes a second. Prints the image's name.
# The list of packages is in oracle/reference/release.go.
set -eu
cd "$(dirname "$0")/.."
make --silent bin/oracle
exec bin/oracle image "$@"
