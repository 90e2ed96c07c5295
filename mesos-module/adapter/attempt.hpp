#ifndef __ALLOCATOR_ADAPTER_ATTEMPT_HPP__
#define __ALLOCATOR_ADAPTER_ATTEMPT_HPP__

#include <glog/logging.h>

#include <process/future.hpp>

#include "brain/attempt.hpp"

namespace allocator {
namespace adapter {

// Runs an optional step; an exception is only logged.
template <typename Function>
void attempt(const char* what, const Function& function)
{
  brain::attempt<void>(function, [=](const char* why) {
    LOG(ERROR) << "The allocator could not " << what << ": " << why;
  });
}


// Answers a read-only query; an exception becomes a failed future.
template <typename Answer, typename Function>
process::Future<Answer> answer(const Function& function)
{
  using Result = process::Future<Answer>;
  return brain::attempt<Result>(function, [](const char* why) -> Result {
    return process::Failure(why);
  });
}

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_ATTEMPT_HPP__
