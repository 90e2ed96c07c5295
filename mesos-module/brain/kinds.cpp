#include "brain/kinds.hpp"

#include <algorithm>
#include <utility>

#include "brain/text.hpp"

namespace allocator {
namespace brain {
namespace {

// Of the names that may still come, so many find room for a rest kind.
constexpr size_t NEW_NAMES = 8;


wire::ValueType typeOf(Type type)
{
  switch (type) {
    case Type::RANGES: return wire::VALUE_TYPE_RANGES;
    case Type::SET: return wire::VALUE_TYPE_SET;
    default: return wire::VALUE_TYPE_SCALAR;
  }
}


// A sidecar need not know how high a stack of reservations is.
uint32_t depthOf(const Traits& traits)
{
  return std::min<uint32_t>(traits.depth, RESERVATION_DEPTH_MAX);
}


std::string keyOf(const Traits& traits)
{
  std::string key = traits.name;
  key += '\0';
  key += traits.reservedRole;
  key += '\0';
  key += std::to_string(depthOf(traits));

  for (int each :
       {int(traits.type),
        int(traits.revocable),
        int(traits.shared),
        int(traits.form),
        int(traits.unit > 0)}) {
    key += static_cast<char>('0' + each);
  }

  return key;
}


wire::Kind describe(const PieceTable::Row& piece)
{
  const Traits& traits = piece.traits;
  wire::Kind kind;
  kind.set_name(toText(traits.name));
  kind.set_type(typeOf(traits.type));
  kind.set_revocable(traits.revocable);
  kind.set_shared(traits.shared);
  kind.set_reservation_depth(depthOf(traits));
  kind.set_form(traits.form);
  kind.set_indivisible(traits.unit > 0);

  if (traits.depth > 0) {
    kind.set_reserved_role(piece.reservedTold);
  }

  return kind;
}

} // namespace {


constexpr uint32_t Kinds::NONE;
constexpr size_t Kinds::MOST_DEFAULT;


uint32_t Kinds::find(uint32_t piece) const
{
  return piece < ofPiece.size() ? ofPiece[piece] : NONE;
}


uint32_t Kinds::bind(uint32_t piece, const PieceTable& pieces)
{
  const uint32_t known = find(piece);
  if (known != NONE) {
    return known;
  }

  if (piece >= ofPiece.size()) {
    ofPiece.resize(piece + 1, NONE);
  }

  ofPiece[piece] = number(pieces.row(piece));
  return ofPiece[piece];
}


void Kinds::forget(uint32_t piece)
{
  if (piece < ofPiece.size()) {
    ofPiece[piece] = NONE;
  }
}


uint32_t Kinds::number(const PieceTable::Row& piece)
{
  const Traits& traits = piece.traits;
  const std::string key = keyOf(traits);
  auto found = byTraits.find(key);
  if (found != byTraits.end()) {
    return found->second;
  }

  const bool newName = rests.count(traits.name) == 0;
  if (newName) {
    rests[traits.name] = NONE;
    ++restsMissing;
  }

  // The first kind of a name may take room that is kept for new names.
  const size_t reserved = restsMissing + (newName ? 0 : NEW_NAMES);
  const uint32_t kind = kinds.size() + reserved < most ? append(describe(piece))
                                                       : rest(traits.name);

  if (kind != NONE) {
    byTraits[key] = kind;
  }

  return kind;
}


uint32_t Kinds::rest(const std::string& name)
{
  uint32_t& rest = rests[name];

  if (rest == NONE && kinds.size() < most) {
    wire::Kind kind;
    kind.set_name(toText(name));
    kind.set_type(wire::VALUE_TYPE_SCALAR);
    kind.set_rest(true);
    rest = append(std::move(kind));
    --restsMissing;
    crowded.push_back(name);
  }

  return rest;
}


uint32_t Kinds::append(wire::Kind&& kind)
{
  const uint32_t number = static_cast<uint32_t>(kinds.size());
  kinds.emplace_back();
  kinds.back().Swap(&kind);
  kinds.back().set_kind(number);
  return number;
}


Amounts Kinds::toAmounts(const Parts& parts, const PieceTable& pieces)
{
  Amounts result;
  result.reserve(parts.size());

  for (const Part& part : parts) {
    const uint32_t kind = bind(part.piece, pieces);
    if (kind != NONE) {
      result.emplace_back(kind, part.amount);
    }
  }

  std::sort(result.begin(), result.end());

  size_t last = 0;
  for (size_t i = 1; i < result.size(); ++i) {
    if (result[i].first == result[last].first) {
      result[last].second += result[i].second;
    } else {
      result[++last] = result[i];
    }
  }

  result.resize(std::min(result.size(), last + 1));
  return result;
}


std::vector<std::string> Kinds::takeCrowded()
{
  std::vector<std::string> result;
  result.swap(crowded);
  return result;
}


std::vector<wire::Kind> Kinds::takeNew()
{
  std::vector<wire::Kind> result(kinds.begin() + taken, kinds.end());
  taken = kinds.size();
  return result;
}

} // namespace brain {
} // namespace allocator {
