#ifndef __ALLOCATOR_TESTS_CHOICES_HPP__
#define __ALLOCATOR_TESTS_CHOICES_HPP__

#include <cstddef>
#include <cstdint>
#include <random>

namespace allocator {

// The source of choices for a random test: derived from a seed in tests, from
// the input's bytes in a fuzzer.
class Choices
{
public:
  virtual ~Choices() {}

  // A number below `end`, which must not be 0.
  virtual uint32_t draw(uint32_t end) = 0;

  // Whether all choices are used up.
  virtual bool ended() const = 0;
};


// Random choices from a seed, without end.
class SeededChoices : public Choices
{
public:
  explicit SeededChoices(uint64_t seed) : random(seed) {}

  uint32_t draw(uint32_t end) override { return random() % end; }
  bool ended() const override { return false; }

private:
  std::mt19937_64 random;
};


// Choices from bytes. Takes as few whole bytes per choice as necessary; when
// the bytes are used up, every choice is 0.
class ByteChoices : public Choices
{
public:
  ByteChoices(const uint8_t* bytes, size_t size) : next(bytes), left(size) {}

  uint32_t draw(uint32_t end) override
  {
    uint32_t number = 0;
    for (uint32_t most = end - 1; most > 0; most >>= 8) {
      number = number << 8 | byte();
    }
    return number % end;
  }

  bool ended() const override { return left == 0; }

private:
  uint8_t byte()
  {
    if (left == 0) {
      return 0;
    }
    --left;
    return *next++;
  }

  const uint8_t* next;
  size_t left;
};

} // namespace allocator {

#endif // __ALLOCATOR_TESTS_CHOICES_HPP__
