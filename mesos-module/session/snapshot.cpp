#include "session/snapshot.hpp"

#include <algorithm>

namespace allocator {
namespace session {
namespace {

// Encoded size of a message as a field with a number below 16: tag, length,
// content.
template <typename Message>
size_t fieldBytes(const Message& message)
{
  const size_t bytes = message.ByteSizeLong();
  size_t length = 1;

  for (size_t rest = bytes; rest >= 128; rest >>= 7) {
    ++length;
  }

  return 1 + length + bytes;
}


// The number of rows that fit in a chunk, whatever their values: a handle takes
// at most 5 bytes, an amount or a time at most 8 (below 2^54).
int rowsPerChunk(size_t bytesMax, size_t kinds)
{
  const size_t fixed = 64 + 5 * kinds;
  const size_t row = 3 * 5 + 8 * kinds + 8;
  const size_t room = bytesMax > fixed ? bytesMax - fixed : 0;
  return static_cast<int>(std::max<size_t>(1, room / row));
}

} // namespace {


void addRow(const Place& place, const Amounts& amounts, wire::Holdings* to)
{
  if (to->kind_size() == 0) {
    for (const auto& entry : amounts) {
      to->add_kind(entry.first);
    }
  }

  to->add_framework(place.framework);
  to->add_role(place.role);
  to->add_agent(place.agent);
  for (const auto& entry : amounts) {
    to->add_amount(entry.second);
  }
}


SnapshotWriter::SnapshotWriter(size_t _bytesMax) : bytesMax(_bytesMax) {}


// The chunk for a row of these kinds.
template <typename RowsOf>
wire::SnapshotChunk* SnapshotWriter::group(
    Groups* groups,
    const Amounts& amounts,
    const RowsOf& rowsOf)
{
  std::vector<uint32_t> kinds;
  for (const auto& entry : amounts) {
    kinds.push_back(entry.first);
  }

  std::vector<wire::SnapshotChunk>& own = (*groups)[kinds];
  if (own.empty() ||
      rowsOf(own.back()) >= rowsPerChunk(bytesMax, kinds.size())) {
    own.emplace_back();
  }
  return &own.back();
}


void SnapshotWriter::addHolding(const Place& place, const Amounts& amounts)
{
  if (amounts.empty()) {
    return;
  }

  const auto rowsOf = [](const wire::SnapshotChunk& chunk) {
    return chunk.holdings().framework_size();
  };
  addRow(place, amounts, group(&holdings, amounts, rowsOf)->mutable_holdings());
}


void SnapshotWriter::addFilter(
    const Place& place,
    const Amounts& refused,
    int64_t expiresMs)
{
  if (refused.empty()) {
    return;
  }

  const auto rowsOf = [](const wire::SnapshotChunk& chunk) {
    return chunk.filters().expires_ms_size();
  };
  wire::OfferFilters* to = group(&filters, refused, rowsOf)->mutable_filters();
  addRow(place, refused, to->mutable_refused());
  to->add_expires_ms(expiresMs);
}


void SnapshotWriter::addExclusion(const Place& place)
{
  if (exclusions.empty() ||
      exclusions.back().exclusions().framework_size() >=
          rowsPerChunk(bytesMax, 0)) {
    exclusions.emplace_back();
  }

  wire::Exclusions* to = exclusions.back().mutable_exclusions();
  to->add_framework(place.framework);
  to->add_role(place.role);
  to->add_agent(place.agent);
  to->add_excluded(true);
}


// A chunk with room for `more` bytes.
wire::SnapshotChunk* SnapshotWriter::room(size_t more)
{
  if (chunks.empty() || (bytes > 0 && bytes + more > bytesMax)) {
    chunks.emplace_back();
    bytes = 0;
  }

  bytes += more;
  return &chunks.back();
}


template <typename Nouns>
void SnapshotWriter::cut(Nouns* from, Nouns* (wire::SnapshotChunk::*to)())
{
  for (auto& noun : *from) {
    (room(fieldBytes(noun))->*to)()->Add()->Swap(&noun);
  }
}


// Adds rows to the current chunk, or to a new one if `apart`: a chunk holds one
// group per field.
void SnapshotWriter::join(const wire::SnapshotChunk& rows, bool apart)
{
  room(apart ? bytesMax : rows.ByteSizeLong())->MergeFrom(rows);
  bytes = apart ? rows.ByteSizeLong() : bytes;
}


std::vector<wire::SnapshotChunk> SnapshotWriter::take(bool last)
{
  using Chunk = wire::SnapshotChunk;
  cut(all.mutable_kinds(), &Chunk::mutable_kinds);
  cut(all.mutable_roles(), &Chunk::mutable_roles);
  cut(all.mutable_weights(), &Chunk::mutable_weights);
  cut(all.mutable_quotas(), &Chunk::mutable_quotas);
  cut(all.mutable_frameworks(), &Chunk::mutable_frameworks);
  cut(all.mutable_agents(), &Chunk::mutable_agents);

  for (const auto& group : holdings) {
    for (const Chunk& rows : group.second) {
      join(rows, !chunks.empty() && chunks.back().has_holdings());
    }
  }

  for (const auto& group : filters) {
    for (const Chunk& rows : group.second) {
      join(rows, !chunks.empty() && chunks.back().has_filters());
    }
  }

  for (const Chunk& rows : exclusions) {
    join(rows, !chunks.empty() && chunks.back().has_exclusions());
  }

  if (all.has_whitelist()) {
    room(fieldBytes(all.whitelist()))
        ->mutable_whitelist()
        ->Swap(all.mutable_whitelist());
  }

  if (last) {
    Chunk* end = room(0);
    end->set_last(true);
    end->set_paused(all.paused());
  }

  return std::move(chunks);
}

} // namespace session {
} // namespace allocator {
