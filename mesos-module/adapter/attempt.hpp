#ifndef __ALLOCATOR_ADAPTER_ATTEMPT_HPP__
#define __ALLOCATOR_ADAPTER_ATTEMPT_HPP__

#include <exception>

#include <glog/logging.h>

#include <process/future.hpp>

namespace allocator {
namespace adapter {

// Nothing that is thrown may leave an actor: it would end the master.

// Tries something without which the actor goes on.
template <typename Function>
void attempt(const char* what, const Function& function)
{
  try {
    function();
  } catch (const std::exception& error) {
    LOG(ERROR) << "The allocator could not " << what << ": " << error.what();
  }
}


// What somebody asked for, to look at it; or why that cannot be had now.
template <typename Answer, typename Function>
process::Future<Answer> answer(const Function& function)
{
  try {
    return function();
  } catch (const std::exception& error) {
    return process::Failure(error.what());
  }
}

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_ATTEMPT_HPP__
