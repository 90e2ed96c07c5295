// Options of the sanitizers for libraries built without them. Unused without a
// sanitizer.

extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_suppressions();


// The thread sanitizer sees when gRPC and Abseil free memory, but neither their
// atomics nor their locks, so it would report thousands of false races.
extern "C" const char* __tsan_default_options()
{
  return "ignore_noninstrumented_modules=1";
}


// Also ignore code inlined from gRPC's headers: its memory accesses are
// instrumented, but the synchronisation in the library is not.
extern "C" const char* __tsan_default_suppressions()
{
  return "race:grpc::\n";
}
