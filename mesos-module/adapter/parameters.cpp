#include "adapter/parameters.hpp"

#include <functional>
#include <map>
#include <set>
#include <vector>

#include <stout/error.hpp>
#include <stout/none.hpp>
#include <stout/numify.hpp>
#include <stout/option.hpp>
#include <stout/strings.hpp>

using std::map;
using std::set;
using std::string;
using std::vector;

namespace allocator {
namespace adapter {
namespace {

// Takes a value; gives what is wrong with it.
using Reader = std::function<Option<Error>(const string&)>;


Reader text(string* out)
{
  return [=](const string& value) -> Option<Error> {
    if (value.empty()) {
      return Error("must not be empty");
    }
    *out = value;
    return None();
  };
}


Reader boolean(bool* out)
{
  return [=](const string& value) -> Option<Error> {
    if (value != "true" && value != "false") {
      return Error("must be 'true' or 'false'");
    }
    *out = value == "true";
    return None();
  };
}


// One that Mesos has.
Reader sorter(string* out)
{
  return [=](const string& value) -> Option<Error> {
    if (value != "drf" && value != "random") {
      return Error("must be 'drf' or 'random'");
    }
    *out = value;
    return None();
  };
}


template <typename T>
Reader number(T* out, int64_t least, int64_t most)
{
  return [=](const string& value) -> Option<Error> {
    const Try<int64_t> parsed = numify<int64_t>(value);
    if (parsed.isError() || parsed.get() < least || parsed.get() > most) {
      return Error(
          "must be a whole number from " + std::to_string(least) + " to " +
          std::to_string(most));
    }
    *out = T(parsed.get());
    return None();
  };
}


map<string, Reader> readers(Parameters* p)
{
  constexpr int64_t HOUR_MS = 3600 * 1000;
  session::ChannelOptions& channel = p->transport.channel;

  return {
      {"target", text(&channel.target)},
      {"tls_ca", text(&channel.tlsCa)},
      {"tls_cert", text(&channel.tlsCert)},
      {"tls_key", text(&channel.tlsKey)},
      {"tls_name", text(&channel.tlsName)},
      {"session_token_file", text(&channel.tokenFile)},
      {"welcome_deadline_ms", number(&p->deadlines.welcome, 10, HOUR_MS)},
      {"snapshot_deadline_ms", number(&p->deadlines.snapshot, 10, HOUR_MS)},
      {"answer_deadline_ms", number(&p->deadlines.answer, 10, HOUR_MS)},
      {"queue_messages_max",
       number(&p->transport.queueMessagesMax, 1, 1 << 20)},
      {"queue_bytes_max",
       number(&p->transport.queueBytesMax, 1 << 20, int64_t(1) << 34)},
      {"fallback", boolean(&p->fallback)},
      {"fallback_after_ms", number(&p->fallbackAfter, 10, HOUR_MS)},
      {"inverse_offers_within_ms",
       number(&p->inverseOffersWithin, 0, 3162240000000)},
      {"shadow", boolean(&p->shadow)},
      {"role_sorter", sorter(&p->roleSorter)},
      {"framework_sorter", sorter(&p->frameworkSorter)},
      {"barren_intervals_max", number(&p->barrenIntervalsMax, 0, 1 << 30)},
      {"bad_decisions_max", number(&p->badDecisionsMax, 1, 1 << 30)},
      {"breaker_pause_ms", number(&p->breakerPause, 100, HOUR_MS)},
  };
}

} // namespace {


Try<Parameters> parseParameters(const mesos::Parameters& given)
{
  Parameters result;
  result.transport.channel.target = "127.0.0.1:5056";

  const map<string, Reader> known = readers(&result);
  vector<string> errors;
  set<string> seen;

  for (const mesos::Parameter& parameter : given.parameter()) {
    const string& key = parameter.key();
    auto reader = known.find(key);

    if (reader == known.end()) {
      errors.push_back("'" + key + "' is no parameter of this module");
      continue;
    }

    if (!seen.insert(key).second) {
      errors.push_back("'" + key + "' is given twice");
      continue;
    }

    const Option<Error> error = reader->second(parameter.value());
    if (error.isSome()) {
      errors.push_back(
          "'" + key + "' is '" + parameter.value() + "'; it " + error->message);
    }
  }

  for (const char* key : {"role_sorter", "framework_sorter"}) {
    if (!result.shadow && seen.count(key) > 0) {
      errors.push_back(
          string("'") + key +
          "' is for Mesos's own allocator; it needs 'shadow' to be 'true'");
    }
  }

  if (!errors.empty()) {
    return Error(strings::join("; ", errors));
  }

  return result;
}

} // namespace adapter {
} // namespace allocator {
