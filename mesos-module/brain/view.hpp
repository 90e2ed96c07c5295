#ifndef __ALLOCATOR_BRAIN_VIEW_HPP__
#define __ALLOCATOR_BRAIN_VIEW_HPP__

#include <cstdint>
#include <map>
#include <string>

#include "brain/brain.hpp"

namespace allocator {
namespace brain {

// One page of the books as JSON, for operators who ask why something is not
// offered:
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
// The page covers the `count` numbers of agents and of frameworks that begin at
// `first`. `next` is where the next page begins, 0 after the last one. Amounts
// of ranges and sets count their elements.
std::string view(const Brain& brain, uint32_t first, uint32_t count);


// Answers an HTTP query with the parameters `first` and `count`. `count` is at
// most 1000, because the actor does nothing else meanwhile.
struct Page
{
  std::string wrong; // Error in the query; `json` is then empty.
  std::string json;
};

Page page(const Brain& brain, const std::map<std::string, std::string>& query);

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_VIEW_HPP__
