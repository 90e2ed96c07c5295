// Loads a module like a master: into a process with libmesos, binding all
// symbols at once. This reports symbols missing in that Mesos at build time,
// rather than when a master fails to start.
//
//     module_load LIBMESOS MODULE NAME VERSION
#include <dlfcn.h>

#include <cstring>
#include <iostream>

#include <mesos/module.hpp>

namespace {

int fail(const char* what, const char* path)
{
  const char* why = dlerror();
  std::cerr << what << " " << path << ": " << (why == nullptr ? "" : why)
            << std::endl;
  return 1;
}

} // namespace {


int main(int argc, char** argv)
{
  if (argc != 5) {
    std::cerr << "module_load LIBMESOS MODULE NAME VERSION" << std::endl;
    return 2;
  }

  // As in a master, which is linked with libmesos, libraries loaded later see
  // its symbols (RTLD_GLOBAL), and its own calls are bound lazily: a libmesos
  // may lack functions that it never calls. The module's symbols are bound at
  // once.
  if (dlopen(argv[1], RTLD_LAZY | RTLD_GLOBAL) == nullptr) {
    return fail("cannot load", argv[1]);
  }

  void* library = dlopen(argv[2], RTLD_NOW);

  if (library == nullptr) {
    return fail("this Mesos cannot load", argv[2]);
  }

  const auto* module =
      static_cast<const mesos::modules::ModuleBase*>(dlsym(library, argv[3]));

  if (module == nullptr) {
    return fail("no module in", argv[2]);
  }

  if (std::strcmp(module->kind, "Allocator") != 0 ||
      std::strcmp(module->moduleApiVersion, MESOS_MODULE_API_VERSION) != 0 ||
      std::strcmp(module->mesosVersion, argv[4]) != 0) {
    std::cerr << argv[3] << " is of kind " << module->kind << " for Mesos "
              << module->mesosVersion << ", not an Allocator for " << argv[4]
              << std::endl;
    return 1;
  }

  return 0;
}
