#ifndef __ALLOCATOR_TESTS_SCRIPT_C_INTERFACE_H__
#define __ALLOCATOR_TESTS_SCRIPT_C_INTERFACE_H__

#include <stddef.h>

#ifdef __cplusplus
extern "C"
{
#endif

  /* A brain for other languages: lines of a script in, lines of what it did
 * out, as in tests/brain/ (the command `bytes` has messages given as bytes in
 * hexadecimal). It is for one thread at a time. */
  typedef struct allocator_brain allocator_brain;

  /* Null where there is no memory. */
  allocator_brain* allocator_brain_new(void);

  void allocator_brain_delete(allocator_brain* brain);

  /* Runs lines. What it gives lasts until the next call; `*size` is its length,
 * and a null byte follows. Null where there is no memory, and then the brain
 * is of no use any more. */
  const char* allocator_brain_run(
      allocator_brain* brain,
      const char* lines,
      size_t length,
      size_t* size);

#ifdef __cplusplus
}
#endif

#endif /* __ALLOCATOR_TESTS_SCRIPT_C_INTERFACE_H__ */
