# The boot sector of a machine for tests: it is up in a second, prints on its console that it ticks, and obeys the power button.
#
#	as --32 bootsector.s -o b.o && ld -m elf_i386 -Ttext 0x7c00 --oformat binary b.o -o bootsector.bin
#
# The word before the last two is the number of ticks after which it acts, and the byte before those is how: "o" powers it off, "r"
# restarts it, and with "d" it ignores the button.
.code16
.globl _start
_start:
  cli
  xor %ax,%ax
  mov %ax,%ds
  mov %ax,%ss
  mov $0x7c00,%sp
  mov $0x602,%dx          # PM1_EN: the power button
  mov $0x100,%ax
  out %ax,%dx
  mov $hello,%si
  call print
tick:
  mov $4,%cx
wait:
  sti
  hlt                     # the timer ticks 18 times a second
  mov $0x600,%dx          # PM1_STS
  in %dx,%ax
  test $1,%ah
  jnz button
  loop wait
  mov $ticked,%si
  call print
  decw left
  jnz tick
end:
  mov action,%al
  cmp $'o',%al
  je off
  cmp $'r',%al
  je reset
  jmp tick
button:
  mov $0x100,%ax
  out %ax,%dx             # acknowledge
  mov action,%al
  cmp $'d',%al            # deaf
  je tick
  mov $bye,%si
  call print
off:
  mov $0x604,%dx          # PM1_CNT: SLP_EN, S5
  mov $0x2000,%ax
  out %ax,%dx
  hlt
reset:
  mov $6,%al
  mov $0xcf9,%dx
  out %al,%dx
  hlt
print:
  lodsb
  or %al,%al
  jz done
  mov $0x3fd,%dx
  mov %al,%bl
ready:
  in %dx,%al
  test $0x20,%al
  jz ready
  mov %bl,%al
  mov $0x3f8,%dx
  out %al,%dx
  jmp print
done:
  ret
hello: .asciz "boots\r\n"
ticked: .asciz "tick\r\n"
bye: .asciz "bye\r\n"
.org 506
left: .word 0
action: .byte 0
.byte 0
.word 0xaa55
