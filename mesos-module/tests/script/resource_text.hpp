#ifndef __ALLOCATOR_TESTS_SCRIPT_RESOURCE_TEXT_HPP__
#define __ALLOCATOR_TESTS_SCRIPT_RESOURCE_TEXT_HPP__

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "brain/books/resource_classes.hpp"
#include "brain/books/tables.hpp"

namespace allocator {
namespace brain {

std::vector<std::string> split(const std::string& text, char separator);

// Decodes "a%20b" to "a b", so that names may contain bytes that have a meaning
// in scripts.
std::string fromPercent(const std::string& text);

// Formats and parses amounts in thousandths: 1500 is "1.5".
std::string toDecimal(int64_t thousandths);
bool fromDecimal(const std::string& text, int64_t* thousandths);

// Parses amounts by name, such as "cpus:2;mem:512".
bool parseQuantities(const std::string& text, Quantities* quantities);


// Converts resources between the brain's parts and the text of scripts, as the
// adapter does with Mesos's objects:
//
//     cpus:2;mem:512;ports:[1-9,12-12];zones:{a,b}
//     cpus(eng):2               reserved to eng
//     cpus(eng@ops):2           reserved by the principal ops
//     cpus(eng+eng/ads):2       a refined reservation
//     cpus{revocable}:2
//     disk(eng)[volume:v1]:64   a persistent volume, which is one object
//     disk(eng)[volume:v1]{shared}:64
//     disk[mount:m1]:100        also path, block, raw
class ResourceText
{
public:
  using Define =
      std::function<void(uint32_t resourceClass, const Traits& traits)>;

  // Returns an error, or an empty string.
  std::string parse(const std::string& text, const Define& define, Parts* to);

  std::string toText(const Parts& parts) const;

  // Forgets resource classes, whose numbers may be reused from now on.
  void forget(const std::vector<uint32_t>& classes);

private:
  struct Row
  {
    std::string key; // Empty if the number is free.
    Traits traits;
  };

  std::string
  parseItem(const std::string& item, const Define& define, Parts* to);
  std::string parseSpans(const std::string& text, Part* part);
  uint32_t
  bind(const std::string& key, const Traits& traits, const Define& define);

  std::vector<Row> rows;
  std::map<std::string, uint32_t> numbers;
  std::map<std::string, uint64_t> items; // Of sets.
  std::vector<std::string> itemNames;
};

} // namespace brain {
} // namespace allocator {

#endif // __ALLOCATOR_TESTS_SCRIPT_RESOURCE_TEXT_HPP__
