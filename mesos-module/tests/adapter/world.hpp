#ifndef __ALLOCATOR_TESTS_ADAPTER_WORLD_HPP__
#define __ALLOCATOR_TESTS_ADAPTER_WORLD_HPP__

#include <string>

#include <gtest/gtest.h>

#include "adapter/types.hpp"

namespace allocator {
namespace adapter {

inline Resources parse(const std::string& text)
{
  return Resources::parse(text).get();
}


inline Resources allocated(const std::string& text, const std::string& role)
{
  Resources resources = parse(text);
  resources.allocate(role);
  return resources;
}


inline FrameworkID frameworkId(const std::string& value)
{
  FrameworkID id;
  id.set_value(value);
  return id;
}


inline AgentID agentId(const std::string& value)
{
  AgentID id;
  id.set_value(value);
  return id;
}


const FrameworkID ONE = frameworkId("one");
const FrameworkID TWO = frameworkId("two");
const AgentID AGENT = agentId("agent");


inline mesos::ResourceQuantities quantities(const std::string& text)
{
  return mesos::ResourceQuantities::fromString(text).get();
}

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_TESTS_ADAPTER_WORLD_HPP__
