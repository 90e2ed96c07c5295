#include <string>

#include <process/authenticator.hpp>
#include <process/help.hpp>
#include <process/http.hpp>

#include "adapter/attempt.hpp"
#include "adapter/process.hpp"

#include "brain/view.hpp"

using std::string;

namespace http = process::http;

namespace allocator {
namespace adapter {
namespace {

// Realm of the master's read-only endpoints: the same authentication applies.
const char REALM[] = "mesos-master-readonly";

} // namespace {


void AllocatorProcess::initialize()
{
  attempt("serve its books", [this]() {
    route(
        "/books",
        REALM,
        process::HELP(
            process::TLDR("The books of the allocator."),
            process::DESCRIPTION(
                "Agents, frameworks, holdings, refusals and session, as JSON.",
                "`first` and `count` (at most 1000) select a page; `next` in",
                "the answer is the `first` of the next page.")),
        [this](
            const http::Request& request,
            const Option<http::authentication::Principal>&) {
          return answer<http::Response>([&]() { return showBooks(request); });
        });
  });
}


http::Response AllocatorProcess::showBooks(const http::Request& request) const
{
  const brain::Page page =
      brain::page(brain, {request.url.query.begin(), request.url.query.end()});

  if (!page.wrong.empty()) {
    return http::BadRequest(page.wrong);
  }

  http::Response response = http::OK(page.json);
  response.headers["Content-Type"] = "application/json";
  return response;
}

} // namespace adapter {
} // namespace allocator {
