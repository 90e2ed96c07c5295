#ifndef __ALLOCATOR_BRAIN_VIEW_HPP__
#define __ALLOCATOR_BRAIN_VIEW_HPP__

#include <cstdint>
#include <map>
#include <string>

#include "brain/brain.hpp"

namespace allocator {
namespace brain {

// The books as JSON, for whoever wonders why something is not offered:
//
//     {"session": {"snapshot": true, "connected": true, ...}, "paused": false,
//      "recovering": false, "next": 0,
//      "frameworks": [{"id": ..., "active": true, "roles": [...],
//                      "suppressed": [...]}, ...],
//      "agents": [{"id": ..., "hostname": ..., "active": true,
//                  "pieces": [{"name": "cpus", "total": 4, "held": 1}, ...],
//                  "held": [{"framework": ..., "role": ...,
//                            "amounts": {"cpus": 1}}, ...],
//                  "refusals": [{"framework": ..., "role": ...,
//                                "expires_ms": ...,
//                                "amounts": {"cpus": 4}}, ...]}, ...]}
//
// It is a page: of agents and frameworks with numbers from `first`, so many
// numbers of each as `count` says. `next` is where the next page begins; 0
// after the last one. Amounts of ranges and sets are how many there are. A
// filter that its framework took back may be among the refusals.
std::string view(const Brain& brain, uint32_t first, uint32_t count);


// What is answered to whoever asks for a page by `first` and `count`, which is
// at most 1000: the actor does nothing else meanwhile.
struct Page
{
  std::string wrong; // With the query; then there is no page.
  std::string json;
};

Page page(const Brain& brain, const std::map<std::string, std::string>& query);

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_VIEW_HPP__
