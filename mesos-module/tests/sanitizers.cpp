// What the sanitizers must know of the libraries, which are built without
// them. Without a sanitizer nobody calls these functions.

extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_suppressions();


// The thread sanitizer sees neither the atomics nor the locks of gRPC and
// Abseil, only the memory they free: it would report thousands of races.
extern "C" const char* __tsan_default_options()
{
  return "ignore_noninstrumented_modules=1";
}


// The same goes for what gRPC's headers put into our own objects: these
// accesses are seen, and what orders them is not.
extern "C" const char* __tsan_default_suppressions()
{
  return "race:grpc::\n";
}
