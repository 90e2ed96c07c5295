#ifndef __ALLOCATOR_BRAIN_KINDS_HPP__
#define __ALLOCATOR_BRAIN_KINDS_HPP__

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "brain/pieces.hpp"

namespace allocator {
namespace brain {

// The kinds of a session: what the sidecar keeps apart of the pieces.
// Labels, principals, ids of volumes, sources and providers make none.
// Numbers start at 0 and are never bound again within a session.
//
// No more kinds are kept apart than the sidecar takes. What comes beyond
// that is of the rest kind of its name; room for those is kept free.
class Kinds
{
public:
  static constexpr uint32_t NONE = UINT32_MAX;

  // Sidecars take so many unless they say otherwise.
  static constexpr size_t MOST_DEFAULT = 512;

  explicit Kinds(size_t _most = MOST_DEFAULT) : most(_most > 0 ? _most : 1) {}

  // The kind of a piece that is defined; NONE where there is no room even
  // for a rest kind, and then the sidecar must not hear of it.
  uint32_t bind(uint32_t piece, const PieceTable& pieces);

  // NONE where it was not bound.
  uint32_t find(uint32_t piece) const;

  // The number of the piece is to name another.
  void forget(uint32_t piece);

  bool known(uint32_t kind) const { return kind < kinds.size(); }

  // Whether objects of a known kind are given whole only.
  bool whole(uint32_t kind) const
  {
    return kinds[kind].indivisible() || kinds[kind].rest();
  }

  // Amounts by kind; parts that no kind can be bound for are left out.
  Amounts toAmounts(const Parts& parts, const PieceTable& pieces);

  size_t size() const { return kinds.size(); }
  const std::string& name(uint32_t kind) const { return kinds[kind].name(); }

  // Names whose pieces became too many since the last call.
  std::vector<std::string> takeCrowded();

  // Kinds that are new since the last call.
  std::vector<wire::Kind> takeNew();

private:
  uint32_t number(const PieceTable::Row& piece);
  uint32_t rest(const std::string& name);
  uint32_t append(wire::Kind&& kind);

  size_t most;
  std::vector<wire::Kind> kinds;
  std::vector<uint32_t> ofPiece;
  std::unordered_map<std::string, uint32_t> byTraits;

  // The rest kind of each name that was met, or NONE.
  std::unordered_map<std::string, uint32_t> rests;
  size_t restsMissing = 0; // How many of them are NONE.
  std::vector<std::string> crowded;
  size_t taken = 0;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_BRAIN_KINDS_HPP__
