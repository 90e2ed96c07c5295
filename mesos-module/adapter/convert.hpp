#ifndef __ALLOCATOR_ADAPTER_CONVERT_HPP__
#define __ALLOCATOR_ADAPTER_CONVERT_HPP__

#include "adapter/state.hpp"
#include "adapter/types.hpp"

namespace allocator {
namespace adapter {

// From Mesos's messages to the protocol's: the only place where the two
// meet. Handles that are not bound yet are bound on the way; they must be
// told (`Handles::...takeNew`) before what is made here.

wire::Agent toAgent(
    const SlaveID& agentId,
    const Agent& agent,
    const Resources& total,
    Handles* handles);

wire::UpdateAgent toUpdateAgent(
    const SlaveID& agentId,
    const Agent& agent,
    const Resources& total,
    Handles* handles);

wire::Framework toFramework(
    const FrameworkID& frameworkId,
    const Framework& framework,
    Handles* handles);

wire::Quota toQuota(const std::string& role, const mesos::Quota& quota);

wire::Quantities toQuantities(const ResourceQuantities& quantities);

wire::AllocatorOptions toOptions(const mesos::allocator::Options& options);

wire::Unavailability toUnavailability(const Unavailability& unavailability);

wire::ResourceRequest toRequest(
    uint32_t framework,
    const std::vector<mesos::Request>& requests);

// Amounts by kind, in thousandths. Copies of a shared volume count each.
std::map<uint32_t, int64_t> toAmounts(
    const Resources& resources,
    KindTable* kinds);

wire::Amounts toSparse(const Resources& resources, KindTable* kinds);

// Resources by the role they are allocated to; what is not is left out.
std::map<std::string, Resources> byRole(const Resources& resources);


// Collects rows of holdings; rows of the same kinds share columns, since
// columns are dense and kinds may be many (one for each volume).
class HoldingsWriter
{
public:
  explicit HoldingsWriter(Handles* _handles) : handles(_handles) {}

  // A row for each role. Gives how many there are.
  size_t add(
      const FrameworkID& frameworkId,
      const SlaveID& agentId,
      const Resources& resources);

  // One row, of resources that need no allocation.
  void add(
      uint32_t framework,
      uint32_t role,
      uint32_t agent,
      const Resources& resources);

  using Groups = std::map<std::vector<uint32_t>, wire::Holdings>;

  const Groups& groups() const { return rows; }

private:
  Handles* handles;
  Groups rows;
};

} // namespace adapter {
} // namespace allocator {

#endif // __ALLOCATOR_ADAPTER_CONVERT_HPP__
