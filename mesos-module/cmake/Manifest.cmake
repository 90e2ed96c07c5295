# Writes MANIFEST, the file for a master's --modules: deploy/mesos/modules.json (TEMPLATE) for LIBRARY.
file(READ "${TEMPLATE}" manifest)
string(REGEX REPLACE "(\"file\": )\"[^\"]*\"" "\\1\"${LIBRARY}\"" manifest "${manifest}")
message(STATUS "Installing: $ENV{DESTDIR}${MANIFEST}")
file(WRITE "$ENV{DESTDIR}${MANIFEST}" "${manifest}")
