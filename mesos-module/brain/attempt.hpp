#ifndef __ALLOCATOR_BRAIN_ATTEMPT_HPP__
#define __ALLOCATOR_BRAIN_ATTEMPT_HPP__

#include <exception>

namespace allocator {
namespace brain {

// Returns the result of `function`, or `failed(reason)` if it throws. An
// exception that escapes an actor terminates the master.
template <typename Result, typename Function, typename Failed>
Result attempt(const Function& function, const Failed& failed)
{
  try {
    return function();
  } catch (const std::exception& error) {
    return failed(error.what());
  } catch (...) {
    return failed("an exception of an unknown type");
  }
}

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_ATTEMPT_HPP__
