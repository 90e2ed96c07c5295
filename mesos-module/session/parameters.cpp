#include "session/parameters.hpp"

#include <cerrno>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>

using std::map;
using std::set;
using std::string;
using std::vector;

namespace allocator {
namespace session {
namespace {

// Parses a value; returns an error, or an empty string.
using Reader = std::function<string(const string&)>;


Reader text(string* out)
{
  return [=](const string& value) -> string {
    if (value.empty()) {
      return "must not be empty";
    }
    *out = value;
    return string();
  };
}


Reader boolean(bool* out)
{
  return [=](const string& value) -> string {
    if (value != "true" && value != "false") {
      return "must be 'true' or 'false'";
    }
    *out = value == "true";
    return string();
  };
}


// Reads the name of one of Mesos's sorters.
Reader sorter(string* out)
{
  return [=](const string& value) -> string {
    if (value != "drf" && value != "random") {
      return "must be 'drf' or 'random'";
    }
    *out = value;
    return string();
  };
}


bool parse(const string& text, int64_t* number)
{
  char* end = nullptr;
  errno = 0;
  *number = std::strtoll(text.c_str(), &end, 10);
  return !text.empty() &&
      text.find_first_not_of("-0123456789") == string::npos && *end == '\0' &&
      errno == 0;
}


template <typename T>
Reader number(T* out, int64_t least, int64_t most)
{
  return [=](const string& value) -> string {
    int64_t parsed;
    if (!parse(value, &parsed) || parsed < least || parsed > most) {
      return "must be a whole number from " + std::to_string(least) + " to " +
          std::to_string(most);
    }
    *out = T(parsed);
    return string();
  };
}


map<string, Reader> readers(Parameters* p)
{
  constexpr int64_t HOUR_MS = 3600 * 1000;
  ChannelOptions& channel = p->transport.channel;

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


Parameters parseParameters(
    const vector<std::pair<string, string>>& given,
    string* error)
{
  Parameters result;
  result.transport.channel.target = "127.0.0.1:5056";

  const map<string, Reader> known = readers(&result);
  set<string> seen;
  error->clear();

  const auto fail = [error](const string& wrong) {
    *error += (error->empty() ? "" : "; ") + wrong;
  };

  for (const auto& parameter : given) {
    const string key = "'" + parameter.first + "'";
    auto reader = known.find(parameter.first);

    if (reader == known.end()) {
      fail(key + " is not a parameter of this module");
    } else if (!seen.insert(parameter.first).second) {
      fail(key + " is given twice");
    } else {
      const string wrong = reader->second(parameter.second);
      if (!wrong.empty()) {
        string text = key;
        text.append(" is '").append(parameter.second).append("'; it ");
        fail(text + wrong);
      }
    }
  }

  for (const char* key : {"role_sorter", "framework_sorter"}) {
    if (!result.shadow && seen.count(key) > 0) {
      fail(
          string("'") + key +
          "' is for Mesos's own allocator; it needs 'shadow' to be 'true'");
    }
  }

  return result;
}

} // namespace session {
} // namespace allocator {
