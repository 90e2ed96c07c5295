# Writes the manifest that a master's --modules names, for the library as it is installed.
#
# TEMPLATE is deploy/mesos/modules.json, MODULES the directory of the library lib<NAME>.so; the manifest
# is <NAME>.json beside it.
file(READ "${TEMPLATE}" manifest)
string(REGEX REPLACE
  "(\"file\": )\"[^\"]*\"" "\\1\"${MODULES}/lib${NAME}.so\"" manifest "${manifest}")
set(output "$ENV{DESTDIR}${MODULES}/${NAME}.json")
message(STATUS "Installing: ${output}")
file(WRITE "${output}" "${manifest}")
