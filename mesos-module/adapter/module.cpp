#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <glog/logging.h>

#include <mesos/module.hpp>
#include <mesos/version.hpp>

#include <mesos/allocator/allocator.hpp>

#include <mesos/module/allocator.hpp>

#include "adapter/allocator.hpp"

#include "session/channel.hpp"
#include "session/parameters.hpp"

namespace {

mesos::allocator::Allocator* make(const mesos::Parameters& given)
{
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const mesos::Parameter& each : given.parameter()) {
    pairs.emplace_back(each.key(), each.value());
  }

  std::string error;
  const allocator::session::Parameters parameters =
      allocator::session::parseParameters(pairs, &error);

  // Check files and addresses when the master starts, not when it is elected,
  // because an operator is more likely to see the error.
  if (error.empty()) {
    allocator::session::Channels(parameters.transport.channel, &error);
  }

  if (!error.empty()) {
    LOG(ERROR) << "Parameters of the allocator module: " << error;
    return nullptr;
  }

  if (!parameters.shadow) {
    return allocator::adapter::makeAllocator(parameters).release();
  }

  const Try<mesos::allocator::Allocator*> deciding =
      mesos::allocator::Allocator::create(
          "HierarchicalDRF", parameters.roleSorter, parameters.frameworkSorter);

  if (deciding.isError()) {
    LOG(ERROR) << "Mesos's own allocator, which decides in shadow mode, cannot "
               << "be created: " << deciding.error();
    return nullptr;
  }

  LOG(INFO) << "Shadow mode: Mesos's own allocator decides, the sidecar at "
            << parameters.transport.channel.target << " is only compared";
  return allocator::adapter::makeAllocator(
             parameters,
             std::unique_ptr<mesos::allocator::Allocator>(deciding.get()))
      .release();
}


// The master exits with an error if this returns null.
mesos::allocator::Allocator* create(const mesos::Parameters& given)
{
  try {
    return make(given);
  } catch (const std::exception& error) {
    LOG(ERROR) << "The allocator module cannot be used: " << error.what();
    return nullptr;
  }
}

} // namespace {


// The variable's name is the module's name.
mesos::modules::Module<mesos::allocator::Allocator>
    org_mesosallocator_SidecarAllocator(
        MESOS_MODULE_API_VERSION,
        MESOS_VERSION,
        "The mesos-allocator authors",
        "mesos-allocator@localhost",
        "Allocator that asks a sidecar to decide, with a fallback",
        nullptr,
        create);
