#include "session/snapshot.hpp"

#include <algorithm>
#include <utility>

namespace allocator {
namespace session {
namespace {

// What a message takes as a field whose number is below 16: a byte for
// the field, its length, itself.
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


// So many rows stay below the bound whatever the numbers are: a handle
// takes at most 5 bytes, an amount or a time at most 8 (they are below
// 2^54).
int rowsPerChunk(size_t bytesMax, size_t kinds)
{
  const size_t fixed = 64 + 5 * kinds;
  const size_t row = 3 * 5 + 8 * kinds + 8;
  const size_t room = bytesMax > fixed ? bytesMax - fixed : 0;
  return static_cast<int>(std::max<size_t>(1, room / row));
}


template <typename Column>
void copy(const Column& from, int begin, int end, Column* to)
{
  to->Reserve(end - begin);

  for (int i = begin; i < end; ++i) {
    to->Add(from.Get(i));
  }
}


bool hasRows(const wire::Holdings& holdings)
{
  const int64_t rows = holdings.framework_size();

  return holdings.role_size() == rows && holdings.agent_size() == rows &&
      holdings.amount_size() == rows * holdings.kind_size();
}


void copyRows(
    const wire::Holdings& from,
    int begin,
    int end,
    wire::Holdings* to)
{
  const int kinds = from.kind_size();

  copy(from.framework(), begin, end, to->mutable_framework());
  copy(from.role(), begin, end, to->mutable_role());
  copy(from.agent(), begin, end, to->mutable_agent());
  copy(from.kind(), 0, kinds, to->mutable_kind());
  copy(from.amount(), begin * kinds, end * kinds, to->mutable_amount());
}


bool sameKinds(const wire::Holdings& one, const wire::Holdings& other)
{
  return one.kind_size() == other.kind_size() &&
      std::equal(one.kind().begin(), one.kind().end(), other.kind().begin());
}


// Appends rows of the same kinds.
void append(const wire::Holdings& rows, wire::Holdings* to)
{
  to->mutable_framework()->MergeFrom(rows.framework());
  to->mutable_role()->MergeFrom(rows.role());
  to->mutable_agent()->MergeFrom(rows.agent());
  to->mutable_amount()->MergeFrom(rows.amount());

  if (to->kind_size() == 0) {
    *to->mutable_kind() = rows.kind();
  }
}

} // namespace {


SnapshotWriter::SnapshotWriter(size_t _bytesMax)
  : bytesMax(_bytesMax), chunks(1)
{
}


wire::SnapshotChunk*
SnapshotWriter::place(int field, bool repeated, size_t more)
{
  const bool follows = lastField < field || (lastField == field && repeated);

  if (bytes > 0 && (!follows || bytes + more > bytesMax)) {
    chunks.emplace_back();
    bytes = 0;
  }

  bytes += more;
  lastField = field;
  return &chunks.back();
}


wire::SnapshotChunk* SnapshotWriter::current(int field)
{
  return lastField == field ? &chunks.back() : nullptr;
}


void SnapshotWriter::add(wire::Kind&& kind)
{
  place(wire::SnapshotChunk::kKindsFieldNumber, true, fieldBytes(kind))
      ->add_kinds()
      ->Swap(&kind);
}


void SnapshotWriter::add(wire::Role&& role)
{
  place(wire::SnapshotChunk::kRolesFieldNumber, true, fieldBytes(role))
      ->add_roles()
      ->Swap(&role);
}


void SnapshotWriter::add(wire::Weight&& weight)
{
  place(wire::SnapshotChunk::kWeightsFieldNumber, true, fieldBytes(weight))
      ->add_weights()
      ->Swap(&weight);
}


void SnapshotWriter::add(wire::Quota&& quota)
{
  place(wire::SnapshotChunk::kQuotasFieldNumber, true, fieldBytes(quota))
      ->add_quotas()
      ->Swap(&quota);
}


void SnapshotWriter::add(wire::Framework&& framework)
{
  const size_t more = fieldBytes(framework);
  place(wire::SnapshotChunk::kFrameworksFieldNumber, true, more)
      ->add_frameworks()
      ->Swap(&framework);
}


void SnapshotWriter::add(wire::Agent&& agent)
{
  place(wire::SnapshotChunk::kAgentsFieldNumber, true, fieldBytes(agent))
      ->add_agents()
      ->Swap(&agent);
}


void SnapshotWriter::add(wire::Whitelist&& whitelist)
{
  const size_t more = fieldBytes(whitelist);
  place(wire::SnapshotChunk::kWhitelistFieldNumber, false, more)
      ->mutable_whitelist()
      ->Swap(&whitelist);
}


void SnapshotWriter::add(const wire::Holdings& holdings)
{
  if (!hasRows(holdings)) {
    wrong("holdings");
    return;
  }

  const int rows = holdings.framework_size();
  const int step = rowsPerChunk(bytesMax, holdings.kind_size());

  for (int begin = 0; begin < rows; begin += step) {
    wire::Holdings piece;
    copyRows(holdings, begin, std::min(begin + step, rows), &piece);

    const int field = wire::SnapshotChunk::kHoldingsFieldNumber;
    const wire::SnapshotChunk* chunk = current(field);
    const bool joins = chunk != nullptr && sameKinds(chunk->holdings(), piece);

    append(piece, place(field, joins, fieldBytes(piece))->mutable_holdings());
  }
}


void SnapshotWriter::add(const wire::OfferFilters& filters)
{
  const wire::Holdings& refused = filters.refused();
  const int rows = refused.framework_size();

  if (!hasRows(refused) || filters.expires_ms_size() != rows) {
    wrong("filters");
    return;
  }

  const int step = rowsPerChunk(bytesMax, refused.kind_size());

  for (int begin = 0; begin < rows; begin += step) {
    const int end = std::min(begin + step, rows);

    wire::OfferFilters piece;
    copyRows(refused, begin, end, piece.mutable_refused());
    copy(filters.expires_ms(), begin, end, piece.mutable_expires_ms());

    const int field = wire::SnapshotChunk::kFiltersFieldNumber;
    const wire::SnapshotChunk* chunk = current(field);
    const bool joins = chunk != nullptr &&
        sameKinds(chunk->filters().refused(), piece.refused());

    wire::OfferFilters* to =
        place(field, joins, fieldBytes(piece))->mutable_filters();
    append(piece.refused(), to->mutable_refused());
    to->mutable_expires_ms()->MergeFrom(piece.expires_ms());
  }
}


void SnapshotWriter::add(const wire::Exclusions& exclusions)
{
  const int rows = exclusions.framework_size();

  if (exclusions.role_size() != rows || exclusions.agent_size() != rows ||
      exclusions.excluded_size() != rows) {
    wrong("exclusions");
    return;
  }

  const int step = rowsPerChunk(bytesMax, 0);

  for (int begin = 0; begin < rows; begin += step) {
    const int end = std::min(begin + step, rows);

    wire::Exclusions piece;
    copy(exclusions.framework(), begin, end, piece.mutable_framework());
    copy(exclusions.role(), begin, end, piece.mutable_role());
    copy(exclusions.agent(), begin, end, piece.mutable_agent());
    copy(exclusions.excluded(), begin, end, piece.mutable_excluded());

    const size_t more = fieldBytes(piece);
    place(wire::SnapshotChunk::kExclusionsFieldNumber, true, more)
        ->mutable_exclusions()
        ->MergeFrom(piece);
  }
}


void SnapshotWriter::wrong(const char* what)
{
  if (error_.empty()) {
    error_ = std::string("the columns of the snapshot's ") + what +
        " are not equally long";
  }
}


std::vector<wire::SnapshotChunk> SnapshotWriter::take(bool last)
{
  if (last) {
    chunks.back().set_last(true);
    chunks.back().set_paused(paused);
  } else if (lastField == 0) {
    chunks.clear();
  }

  return std::move(chunks);
}


std::vector<wire::SnapshotChunk> SnapshotWriter::finish(
    uint64_t sequence,
    int64_t clockMs)
{
  std::vector<wire::SnapshotChunk> result = take(true);
  result.back().set_sequence(sequence);
  result.back().set_clock_ms(clockMs);
  return result;
}

} // namespace session {
} // namespace allocator {
