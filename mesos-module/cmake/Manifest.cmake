# Writes MANIFEST, what a master's --modules names: deploy/mesos/modules.json (TEMPLATE) for LIBRARY.
file(READ "${TEMPLATE}" manifest)
string(REGEX REPLACE "(\"file\": )\"[^\"]*\"" "\\1\"${LIBRARY}\"" manifest "${manifest}")
message(STATUS "Installing: $ENV{DESTDIR}${MANIFEST}")
file(WRITE "$ENV{DESTDIR}${MANIFEST}" "${manifest}")
