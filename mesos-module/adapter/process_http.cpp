#include <cstdint>
#include <string>

#include <process/authenticator.hpp>
#include <process/help.hpp>
#include <process/http.hpp>

#include <stout/numify.hpp>

#include "adapter/attempt.hpp"
#include "adapter/process.hpp"

#include "brain/view.hpp"

using std::string;

namespace http = process::http;

namespace allocator {
namespace adapter {
namespace {

// Of the master's endpoints that only read; where it wants to know who asks,
// so does this one.
const char REALM[] = "mesos-master-readonly";

// The actor does nothing else meanwhile.
constexpr uint32_t COUNT_MAX = 1000;


// A number of the query; what is wrong with it goes into `error`.
uint32_t read(
    const http::Request& request,
    const string& name,
    uint32_t otherwise,
    uint32_t most,
    string* error)
{
  const Option<string> text = request.url.query.get(name);
  if (text.isNone()) {
    return otherwise;
  }

  const Try<uint32_t> number = numify<uint32_t>(text.get());
  if (number.isError() || number.get() > most) {
    *error = "'" + name + "' is '" + text.get() + "'; it must be from 0 to " +
        std::to_string(most) + "\n";
    return 0;
  }

  return number.get();
}

} // namespace {


void AllocatorProcess::initialize()
{
  attempt("show its books", [this]() {
    route(
        "/books",
        REALM,
        process::HELP(
            process::TLDR("What the allocator has on its books."),
            process::DESCRIPTION(
                "Agents, frameworks, who holds what, refusals and the session,",
                "as JSON. `first` and `count` (at most 1000) say which page;",
                "`next` of the answer is the next page's `first`.")),
        [this](
            const http::Request& request,
            const Option<http::authentication::Principal>&) {
          return answer<http::Response>([&]() { return showBooks(request); });
        });
  });
}


http::Response AllocatorProcess::showBooks(const http::Request& request) const
{
  string error;
  const uint32_t first = read(request, "first", 0, UINT32_MAX, &error);
  const uint32_t count = read(request, "count", COUNT_MAX, COUNT_MAX, &error);

  if (!error.empty()) {
    return http::BadRequest(error);
  }

  http::Response response = http::OK(brain::view(brain, first, count));
  response.headers["Content-Type"] = "application/json";
  return response;
}

} // namespace adapter {
} // namespace allocator {
