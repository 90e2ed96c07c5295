// Options of the sanitizers for libraries built without them. Unused without a
// sanitizer.

extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_suppressions();


// The thread sanitizer sees memory freed by gRPC and Abseil, but neither their
// atomics nor their locks, so it would report thousands of false races.
extern "C" const char* __tsan_default_options()
{
  return "ignore_noninstrumented_modules=1";
}


// Likewise for code inlined from gRPC's headers: the accesses are instrumented,
// but not what orders them.
extern "C" const char* __tsan_default_suppressions()
{
  return "race:grpc::\n";
}
